"""The connections of one replica to its cluster: watches, ledger and controller."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from prometheus_client import Histogram

from planner.cluster.snapshot import Snapshot
from planner.model.names import kind_of, namespace_of
from planner.model.reservation import Reservation
from webhook.admission.configuration.settings import DEFAULT_SETTINGS, Settings, same_in_all_namespaces
from webhook.admission.environment import NAMESPACE, Access, Environment
from webhook.kube.api.access_reviews import asking
from webhook.kube.api.client import Api
from webhook.kube.api.kubeconfig import ACCOUNT, connect
from webhook.kube.api.reflector import Reflector
from webhook.kube.certificates import SecretCertificates
from webhook.kube.controller.controller import Controller
from webhook.kube.controller.gang_history import GangHistoryWriter
from webhook.kube.controller.leader import Leader, with_companion
from webhook.kube.controller.node_taints import NodeTaints
from webhook.kube.ledger.confirming import ConfirmingLedger
from webhook.kube.ledger.ledger import KubeLedger
from webhook.kube.ledger.owners import StoredOwners
from webhook.kube.ledger.proposals import COMMIT_SECONDS
from webhook.kube.reports import ReportWriter
from webhook.kube.state.cluster_watch import ClusterWatch
from webhook.kube.state.kueue_watch import KueueWatch
from webhook.kube.state.param_watch import ParamsWatch
from webhook.kube.state.parameters_watch import ParametersWatch
from webhook.kube.state.workload_watch import QueueWatch
from webhook.placement.fair_order import WaitingGang
from webhook.policy.model.policy import PolicySet
from webhook.wire.request import UserInfo
from webhook.workloads.shared_gangs.pod_groups import POD_GANGS

WhileLeading = Callable[["ClusterRuntime"], Coroutine[None, None, None]]
"""What the leader runs beside the controller, until it is cancelled."""


@dataclass(slots=True)
class ClusterRuntime:
    """The `webhook.server.cluster_source.ClusterSource` of a watched cluster, with the ledger in that
    cluster.
    """

    api: Api
    watch: ClusterWatch
    ledger: KubeLedger
    claims: ConfirmingLedger
    """The same ledger for admission calls: a claim is written only after a watch has shown the object."""
    queue: QueueWatch
    params: ParamsWatch
    """The objects that policies use as parameters (`paramKind`)."""
    parameters: ParametersWatch
    """Bayplan's own parameters, a ConfigMap."""
    access: Callable[[UserInfo], Access]
    """Returns the access checks of a user."""
    election: asyncio.Task[None] | None = None
    """The leader election; None if the replica does not take part."""
    certificates: SecretCertificates | None = None
    """Set if the certificates are in a Secret of the cluster."""
    recoveries: Histogram | None = None
    """The controller's metric of recoveries; None if the replica takes no part in the leader election."""
    reports: ReportWriter[Any] | None = None
    """The writer of Reports, None if the server has none."""
    taints: bool = False
    """Whether reserved domains are tainted."""
    settings: Settings = DEFAULT_SETTINGS
    """The settings that apply if the cluster defines no other ones."""

    @classmethod
    async def connect(
        cls,
        kubeconfig: str | None,
        *,
        in_cluster: bool,
        account: Path = ACCOUNT,
        namespace: str = NAMESPACE,
        taints: bool = False,
        settings: Settings = DEFAULT_SETTINGS,
        commit_seconds: float = COMMIT_SECONDS,
    ) -> ClusterRuntime:
        """Starts the watches. Returns before anything has been read.

        `account`: the folder of the service account, as in `kubeconfig.connect`. `namespace`: that of the
        installation. `taints`: whether reserved domains are tainted. `settings`: those that apply if the
        cluster defines no other ones. `commit_seconds`: how long the ledger tries to write a reservation.
        Raises `InputError` for a kubeconfig or service account that cannot be used.
        """
        api = await connect(kubeconfig, in_cluster=in_cluster, account=account)
        access = asking(api, asyncio.get_running_loop())
        watch = ClusterWatch(api, namespace)
        queue = QueueWatch(api, watch.news.set, watch.pod_groups)
        parameters = ParametersWatch(api, namespace, queue.rechosen)
        ledger = KubeLedger(api, commit_seconds, partial(StoredOwners, api))
        claims = ConfirmingLedger(ledger, partial(_stored, watch, queue))
        side = cls(api, watch, ledger, claims, queue, ParamsWatch(api), parameters, access)
        side.taints, side.settings = taints, settings
        await side.watch.start()
        await side.parameters.start()
        await side.queue.start()
        await side.ledger.start()
        return side

    def take_part(self, namespace: str, while_leading: WhileLeading) -> None:
        """Takes part in the leader election in this namespace until `close`. The leader runs the controller
        and, beside it, `while_leading`.
        """
        controller = Controller(
            self.api,
            self.watch,
            self.queue,
            self.ledger,
            GangHistoryWriter(self.api, namespace),
            fence=NodeTaints(self.api) if self.taints else None,
            observed=self.observed,
            kueue=partial(KueueWatch, self.api, self.watch.news.set),
        )
        self.recoveries = controller.recoveries
        leader = Leader(self.api, namespace, partial(_led_as_chosen, self, controller, while_leading))
        self.election = asyncio.create_task(leader.run())

    async def close(self) -> None:
        """Stops everything in reverse order; the Lease is released, so that another replica leads at once."""
        if self.election is not None:
            self.election.cancel()
            with suppress(asyncio.CancelledError):
                await self.election
        if self.reports is not None:
            await self.reports.close()
        await self.params.close()
        await self.parameters.close()
        await self.claims.close()
        await self.ledger.close()
        await self.queue.close()
        await self.watch.close()
        await self.api.close()

    def snapshot(self) -> Snapshot | None:
        """Returns the current snapshot, None until every watch has listed its resource."""
        return self.watch.snapshot()

    def environment(self) -> Environment:
        """Returns what decisions look up: namespaces, parameters, settings, access reviews and the queue."""
        around = self.watch.environment()
        return replace(
            around,
            params=self.params,
            configured=self.parameters.configured(),
            access=self.access,
            stored_members=self.queue.members,
            waiting=self.waiting_gangs,
            skips=self.queue.skips,
            fenced=self.taints,
            settings=same_in_all_namespaces(self.settings),
        )

    def observed(self, namespaces: Iterable[str]) -> frozenset[str]:
        """Returns those of the namespaces that are not in mode `enforce`. Thread-safe.

        `queue.in_force` returns the settings. Until a server has set it, only the namespaces' labels count,
        so no gang is released by mistake.
        """
        return replace(self.watch.environment(), settings=self.queue.in_force()).observed(namespaces)

    def waiting_gangs(self) -> Sequence[WaitingGang]:
        """Returns the queue without the gangs of observed namespaces, which delay no other gang."""
        queue = self.queue.queue()
        observed = self.observed(namespace_of(gang.group.name) for gang in queue) if queue else frozenset()
        return [gang for gang in queue if namespace_of(gang.group.name) not in observed]

    def knows_owner(self, owner: str) -> bool:
        """Returns whether the workload NAMESPACE/KIND/NAME has been seen; True for kinds that are not
        watched.
        """
        return self.queue.knows(owner)

    def topmost(self, owner: str) -> str:
        """Returns the topmost watched owner of the object NAMESPACE/KIND/NAME, or the object itself."""
        return self.queue.topmost(owner)

    def has(self, name: str) -> bool:
        """Returns whether the object NAMESPACE/KIND/NAME exists; True for kinds that are not watched."""
        namespace, kind, own = name.split("/", 2)
        if kind != "Pod":
            return self.queue.knows(name)
        key = f"{namespace}/{own}"
        return self.queue.has_pod(key) or self.watch.has_pod(key)

    def knows_namespace(self, name: str) -> bool:
        """Returns whether the Namespace has been seen."""
        return self.watch.knows_namespace(name)

    def follow(self, policies: PolicySet) -> None:
        """Watches the parameter kinds of these policies."""
        self.params.follow(policies)
        self.queue.rechosen()  # parameters may be in the policy files too

    def problem(self) -> str:
        """Returns why the snapshot, the book, parameters or certificates may be older than they should be; ""
        for no problem.
        """
        watches = (self.watch, self.ledger, self.queue, self.params, self.parameters)
        certificates = self.certificates.problem if self.certificates else ""
        return "; ".join(filter(None, (*(watch.problem() for watch in watches), certificates)))

    def reflectors(self) -> list[Reflector]:
        """Returns the reflectors of all watches."""
        watches = (self.watch, self.queue, self.params, self.parameters)
        return [self.ledger.reflector, *(reflector for watch in watches for reflector in watch.reflectors)]

    def waiting(self) -> str:
        """Returns what has not been read for the first time yet; "" once all is read."""
        watches = (self.watch, self.ledger, self.queue, self.params, self.parameters)
        read = next((path for watch in watches if (path := watch.waiting())), "")
        return read or (self.certificates.waiting() if self.certificates else "")


def _stored(watch: ClusterWatch, queue: QueueWatch, held: Reservation, uid: str) -> bool:
    """Returns whether the workload of a reservation is stored under this UID, or a bound pod uses the
    reservation.

    Bound pods count only for gangs that are named after pods or a group: these may have no workload.
    """
    if queue.is_stored(held.gang, uid):
        return True
    return kind_of(held.gang) in POD_GANGS and watch.uses(held)


async def _led_as_chosen(side: ClusterRuntime, controller: Controller, while_leading: WhileLeading) -> None:
    """Runs the controller and `while_leading` once the parameters are read: they say what gangs hold by
    default and which namespaces are enforced.
    """
    await side.parameters.synced()
    await with_companion(controller.lead, partial(while_leading, side))
