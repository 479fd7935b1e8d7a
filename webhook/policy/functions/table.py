"""The table of functions that bayplan.dev policies may call in addition to Kubernetes' own.

A new function is a function in the file of its subject and a row here.
"""

from __future__ import annotations

from collections.abc import Mapping

from webhook.cel import Function
from webhook.policy.functions.devices import DEVICE_FUNCTIONS
from webhook.policy.functions.gpu_models import GPU_MODEL_FUNCTIONS
from webhook.policy.functions.keys import KEY_FUNCTIONS
from webhook.policy.functions.limits import LIMIT_FUNCTIONS
from webhook.policy.functions.mig import MIG_FUNCTIONS
from webhook.policy.functions.node_pools import POOL_FUNCTIONS
from webhook.policy.functions.numa import NUMA_FUNCTIONS
from webhook.policy.functions.pods import POD_FUNCTIONS
from webhook.policy.functions.qos import QOS_FUNCTIONS
from webhook.policy.functions.schedulers import SCHEDULER_FUNCTIONS
from webhook.policy.functions.workloads import WORKLOAD_FUNCTIONS
from webhook.workloads.node_affinity import prefer, require

FUNCTIONS: Mapping[str, Function] = {
    "nodeAffinity.require": Function(require, 2, 2),
    "nodeAffinity.prefer": Function(prefer, 3, 3),
    **DEVICE_FUNCTIONS,
    **GPU_MODEL_FUNCTIONS,
    **KEY_FUNCTIONS,
    **LIMIT_FUNCTIONS,
    **MIG_FUNCTIONS,
    **NUMA_FUNCTIONS,
    **POD_FUNCTIONS,
    **POOL_FUNCTIONS,
    **QOS_FUNCTIONS,
    **SCHEDULER_FUNCTIONS,
    **WORKLOAD_FUNCTIONS,
}
"""Name in CEL → the function, the fewest and the most arguments."""
