"""The manifests of the four documents that Bayplan replaces by hand, field by field as they print them.

Scripts, images and texts of the documents are left out: nothing here runs them.
"""

from __future__ import annotations

import yaml

from tests.e2e.api import Json
from tests.schedulers.nodes import BLOCK, RACK

POLICIES = """
topologyAwareScheduling:
  enabled: true
  policies:
  - {name: nvlink-locality, weight: 100, topology: nvlink, strategy: pack}
  - {name: numa-locality, weight: 50, topology: numa, strategy: pack}
  - {name: nvswitch-preference, weight: 80, topology: nvswitch, strategy: prefer}
  levels:
  - {name: gpu, label: nvidia.com/gpu}
  - {name: nvlink-domain, label: gpu.topology/nvlink-domain}
  - {name: numa-node, label: topology.kubernetes.io/numa-node}
  - {name: node, label: kubernetes.io/hostname}
"""
TRAINING = """
apiVersion: scheduling.run.ai/v2
kind: PodGroup
metadata: {name: ddp-training-tas, namespace: ml-training}
spec:
  minMember: 4
  queue: training
  topologyPolicy: {scope: nvlink-domain}
---
apiVersion: batch/v1
kind: Job
metadata: {name: ddp-nvlink-training, namespace: ml-training}
spec:
  parallelism: 4
  completions: 4
  template:
    metadata:
      annotations:
        scheduling.run.ai/pod-group: ddp-training-tas
        scheduling.run.ai/topology-policy: nvlink-locality
    spec:
      schedulerName: kai-scheduler
      containers:
      - {name: trainer, image: i, resources: {limits: {nvidia.com/gpu: 2}}}
"""
MULTI_NODE = """
apiVersion: scheduling.run.ai/v2
kind: PodGroup
metadata: {name: multi-node-training, namespace: ml-training}
spec:
  minMember: 2
  queue: training
  topologyPolicy:
    scope: rack
    affinity:
      required:
      - {key: nvidia.com/nvswitch.present, operator: In, values: ["true"]}
---
apiVersion: v1
kind: Pod
metadata:
  name: trainer-node-0
  namespace: ml-training
  annotations: {scheduling.run.ai/pod-group: multi-node-training}
spec:
  schedulerName: kai-scheduler
  nodeSelector: {nvidia.com/nvswitch.present: "true"}
  containers:
  - {name: trainer, image: i, resources: {limits: {nvidia.com/gpu: 8}}}
"""
SERVING = """
apiVersion: scheduling.run.ai/v2
kind: PodGroup
metadata: {name: llm-serving-pipeline, namespace: ml-inference}
spec:
  minMember: 3
  queue: inference
  topologyPolicy: {scope: node}
---
apiVersion: v1
kind: Pod
metadata:
  name: prefill-worker
  namespace: ml-inference
  annotations:
    scheduling.run.ai/pod-group: llm-serving-pipeline
    scheduling.run.ai/topology-role: prefill
spec:
  schedulerName: kai-scheduler
  containers:
  - {name: prefill, image: i, resources: {limits: {nvidia.com/gpu: 4}}}
---
apiVersion: v1
kind: Pod
metadata:
  name: decode-worker
  namespace: ml-inference
  annotations:
    scheduling.run.ai/pod-group: llm-serving-pipeline
    scheduling.run.ai/topology-role: decode
spec:
  schedulerName: kai-scheduler
  containers:
  - {name: decode, image: i, resources: {limits: {nvidia.com/gpu: 4}}}
"""
BENCHMARK = """
apiVersion: batch/v1
kind: Job
metadata: {name: nccl-benchmark, namespace: ml-training}
spec:
  template:
    metadata:
      annotations: {scheduling.run.ai/topology-policy: nvlink-locality}
    spec:
      schedulerName: kai-scheduler
      restartPolicy: Never
      containers:
      - {name: benchmark, image: i, resources: {limits: {nvidia.com/gpu: 4}}}
"""
REPLICAS = f"""
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata:
  annotations:
    kai.scheduler/topology: cluster-topology
    kai.scheduler/topology-required-placement: {BLOCK}
    kai.scheduler/topology-preferred-placement: {RACK}
  labels: {{runai/queue: production}}
  namespace: runai-production
  name: llm-inference
spec:
  replicas: 2
  leaderWorkerTemplate:
    size: 2
    workerTemplate:
      spec:
        containers:
        - {{name: vllm, image: i, resources: {{limits: {{nvidia.com/gpu: 8}}}}}}
"""
TRAINER = """
apiVersion: v1
kind: Pod
metadata: {name: trainer, namespace: research}
spec:
  nodeSelector: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}
  containers:
  - name: train
    image: i
    resources:
      requests: {cpu: "16", memory: 64Gi, nvidia.com/gpu: "4"}
      limits: {cpu: "16", memory: 64Gi, nvidia.com/gpu: "4"}
"""
LEAF_SPINE = """
apiVersion: batch/v1
kind: Job
metadata:
  name: single-gpu-job
  namespace: research
  annotations: {topology.scheduler/gpu-count: "1"}
spec:
  template:
    spec:
      schedulerName: topology-aware-scheduler
      containers:
      - {name: gpu-job, image: i, resources: {limits: {nvidia.com/gpu: 1}}}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: multi-gpu-job
  namespace: research
  annotations:
    topology.scheduler/gpu-count: "8"
    topology.scheduler/preferred-domain: leaf-1
spec:
  template:
    spec:
      schedulerName: topology-aware-scheduler
      containers:
      - {name: gpu-job, image: i, resources: {limits: {nvidia.com/gpu: 8}}}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: gpu-inference-service
  namespace: research
  annotations:
    topology.scheduler/gpu-count: "4"
    topology.scheduler/latency-sensitive: "true"
spec:
  replicas: 1
  selector: {matchLabels: {app: inference}}
  template:
    metadata: {labels: {app: inference}}
    spec:
      schedulerName: topology-aware-scheduler
      containers:
      - {name: inference, image: i, resources: {limits: {nvidia.com/gpu: 4}}}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: multi-node-training
  namespace: research
  annotations:
    topology.scheduler/gpu-count: "16"
    topology.scheduler/preferred-domain: spine-1
    topology.scheduler/network-bandwidth: 200Gb
    topology.scheduler/placement-strategy: consolidated
spec:
  parallelism: 4
  completions: 4
  template:
    spec:
      schedulerName: topology-aware-scheduler
      restartPolicy: Never
      containers:
      - {name: train, image: i, resources: {limits: {nvidia.com/gpu: 4}}}
"""


def bodies(text: str) -> list[Json]:
    """The objects of a document; a Job without a restart policy, which Kubernetes refuses, has one."""
    objects = [body for body in yaml.safe_load_all(text) if body]
    for body in objects:
        if body["kind"] == "Job":
            body["spec"]["template"]["spec"].setdefault("restartPolicy", "Never")
    return objects
