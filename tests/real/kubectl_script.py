"""What is typed on a real cluster and on the embedded one: kubectl's words, step by step.

Knows commands and the files in `kubectl/` they are about. Must not know what is printed: a real cluster says it.
"""

from collections.abc import Mapping
from urllib.parse import quote

import msgspec


class Step(msgspec.Struct, frozen=True):
    """One command. What has to come true before the next one is a step too: `wait`."""

    words: str
    """As in a shell: quotes and backslashes keep words together. A word in braces is one of `knowing`."""
    text: str = ""
    """What is piped into it."""
    knowing: Mapping[str, str] = {}
    """Commands that are asked first, by the word in braces that their output stands for."""
    meanwhile: tuple["Step", ...] = ()
    """What is done while it runs, as soon as it has printed something or a second has passed."""
    editor: str = "false"
    at_a_glance: bool = False
    """Whether no more than the first line is compared, as what follows shows the insides of the real server."""


DEPENDENT = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: %s
  labels: {part: family}
  ownerReferences:
  - {apiVersion: v1, kind: ConfigMap, name: parent, uid: {uid}, blockOwnerDeletion: true}
"""
PARENT_UID = {"uid": "get configmap parent -o jsonpath={.metadata.uid}"}
TWICE = '{"metadata": {"name": "twice", "name": "thrice"}, "data": {"a": "b"}, "data": {"a": "c"}, "dat": {}}'


def family(*ways: str) -> tuple[Step, ...]:
    """Return steps that make a parent and its child, and delete the parent in a way of `--cascade`."""
    return tuple(
        step
        for way in ways
        for step in (
            Step("create configmap parent"),
            Step("create -f -", DEPENDENT % "child", PARENT_UID),
            Step(
                "wait --for=delete configmap/child --timeout=20s",
                meanwhile=(Step(f"delete configmap parent --cascade={way}"),),
            )
            if way != "orphan"
            else Step("delete configmap parent --cascade=orphan"),
        )
    )


def patched(name: str, *types_and_patches: str) -> tuple[Step, ...]:
    """Return patches of one object."""
    pairs = zip(types_and_patches[::2], types_and_patches[1::2], strict=True)
    return tuple(Step(f"patch {name} --type={kind} -p '{patch}'") for kind, patch in pairs)


def steps(*words: str) -> tuple[Step, ...]:
    """Return steps that need nothing but words."""
    return tuple(Step(one) for one in words)


LOOKING_ROUND = steps(
    "version",
    "api-resources --api-group=resource.k8s.io",
    "api-resources --api-group=cro.hpsys.ibm.ie.com -o wide",
    "api-resources --api-group=coordination.k8s.io --namespaced=true -o name --sort-by=name",
    "get nodes",
    "get node node-1 -o yaml",
    "get no -o name",
    "get namespaces",
    "get ns default -o yaml",
    "get namespaces -o wide --show-labels",
    "describe node node-1",
    "describe namespace default",
    "get pods",
    "get pods -o yaml",
    "get pods -A --no-headers",
    "get composableresources",
    "get resourceclaims,resourceslices,deviceclasses -A",
    "auth whoami -o jsonpath={.status.userInfo.username}{.status.userInfo.groups}",
    "auth can-i create pods",
    "auth can-i '*' '*'",
    "auth can-i get /healthz",
    "auth can-i delete composableresources -q",
    "get --raw /healthz",
    "get --raw /readyz",
    "get --raw /livez",
    "get --raw /apis/resource.k8s.io",
    "get --raw /apis/resource.k8s.io/v1",
    "get --raw /apis/cro.hpsys.ibm.ie.com",
    "get --raw /apis/cro.hpsys.ibm.ie.com/v1alpha1",
    "get --raw /apis/coordination.k8s.io/v1",
    "get --raw /api/v1/nodes/node-9",
    "get --raw /api/v2",
    "get --raw /apis/example.com/v1/spoons",
    "get --raw /nothing",
)
CREATING = (
    *steps(
        "create namespace lab",
        "create namespace lab",
        "create namespace Lab_1",
        "wait --for=create serviceaccount/default -n lab",
        "create configmap plain --from-literal=a=1 --from-literal=b=two",
        "create configmap plain --from-literal=a=1",
        "get configmap plain -o yaml --show-managed-fields",
        "create secret generic secret --from-literal=user=me",
        "get secret secret -o yaml",
        "create serviceaccount runner",
        "get serviceaccount runner -o json",
        "create configmap nowhere -n nowhere",
        "create -f several.yaml",
        "create -f several.yaml",
        "get secrets,serviceaccounts,leases -l part=several",
        "get -f several.yaml -o name",
        "create -f pod.yaml --dry-run=client -o yaml",
        "create -f pod.yaml --dry-run=server",
        "create -f pod.yaml --dry-run=server -o yaml",
        "get pod one",
        "create -f pod.yaml",
        "create -f pod.yaml",
        "wait --for=condition=PodScheduled pod/one",
        "create -f pod-generated.yaml",
        "create -f pod-generated.yaml --dry-run=server -o name",
        "create -f pod-unknown.yaml",
        "create -f pod-unknown.yaml --validate=warn",
        "create -f pod-twice.yaml --validate=strict",
        "create -f pod-twice.yaml --validate=warn",
        "create -f pod-twice.yaml --validate=false --dry-run=server",
        "create -f pod-invalid.yaml",
        "create -f pod-wrong-type.yaml",
        "create -f pod-wrong-type.yaml --validate=false",
        "create -f foreign.yaml",
        "create -f broken.yaml",
        "create -f nothing.yaml",
        "create -f map.yaml -n nowhere",
        "run idle --image=example.com/idle --labels=app=idle --overrides='"
        '{"spec": {"nodeSelector": {"kubernetes.io/hostname": "nowhere"}}}\'',
        "run idle --image=example.com/idle",
        "run Bad_Name --image=x",
        "create -f pending.yaml",
    ),
    Step(
        "create -f - --save-config",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: piped}, data: {a: b}}",
    ),
    *steps("get configmap piped -o yaml", "get configmap -o name --field-selector metadata.name=piped"),
)
READING = steps(
    "get pod one -o yaml",
    "get pod one -o yaml --show-managed-fields",
    "get pod one -o json",
    "get pod one -o wide",
    "get pod one -o name",
    "get pods -o jsonpath='{range .items[*]}{.metadata.name}={.spec.nodeName}{\"\\n\"}{end}' -l app!=gen",
    "get pods -l app=one -o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName,NONE:.spec.nothing",
    "get pods -l app=one -o go-template='{{range .items}}{{.metadata.name}} {{.status.phase}}{{\"\\n\"}}{{end}}'",
    "get pods --show-labels -l 'app in (one,idle)'",
    "get pods -L app,tier -l '!nothing,app'",
    "get pods -A -l app=one",
    "get pods --field-selector spec.nodeName=node-1",
    "get pods --field-selector status.phase!=Pending",
    "get pods --field-selector spec.image=x",
    *(
        f"get --raw /api/v1/pods?labelSelector={quote(one)}"
        for one in (
            "a in",
            "a in ()",
            "a in (b",
            "a in (,)",
            "=x",
            "a b",
            "a,,b",
            "a>x",
            "!",
            "a=b=c",
            "a,(",
            "a=!b",
        )
    ),
    "get pods --sort-by=.metadata.name --no-headers -l app!=gen",
    "get pods --sort-by={.spec.nodeName} -l app!=gen",
    "get nodes --chunk-size=1",
    "get nodes --chunk-size=1 -o name",
    "get nodes,namespaces",
    "get pod/one node/node-1 configmap/plain",
    "get pod one nobody",
    "get pod nobody",
    "get pod nobody --ignore-not-found",
    "get spoons",
    "get pods.v1.example.com",
    "get pods --subresource=status",
    "get pod one --subresource=status -o yaml",
    "get pod one --subresource=scale",
    "get pods one -o jsonpath={.spec.containers[0].image}",
    "get pods -o jsonpath={.nothing",
    "get events -A --field-selector involvedObject.name=one,reason=Scheduled -o custom-columns=M:.message",
    "get --raw '/api/v1/namespaces/default/pods?labelSelector=app%3Done'",
    "get --raw '/api/v1/nodes?limit=1'",
    "get --raw '/api/v1/nodes?limit=-1'",
    "get --raw '/api/v1/pods?fieldSelector=spec.colour%3Dred'",
    "get --raw '/api/v1/namespaces/default/pods/one/status'",
    "get --raw '/api/v1/nodes?resourceVersionMatch=Exact'",
    "describe pod one",
    "describe pod idle",
    "describe pods -l app=one",
    "describe pod nobody",
    "describe configmap plain",
    "describe secret secret",
    "describe lease lead",
    "describe serviceaccount runner",
    "describe namespace lab",
    "describe node node-1",
)
APPLYING = (
    *steps(
        "diff -f map.yaml",
        "apply -f map.yaml --dry-run=server",
        "apply -f map.yaml --dry-run=client",
        "apply -f map.yaml",
        "apply -f map.yaml",
        "get configmap settings -o yaml",
        "apply view-last-applied configmap settings",
        "diff -f map-changed.yaml",
        "apply -f map-changed.yaml --dry-run=server -o yaml",
        "apply -f map-changed.yaml",
        "get configmap settings -o yaml --show-managed-fields",
        "diff -f map-changed.yaml",
        "apply -f pod.yaml",
        "apply set-last-applied -f map-changed.yaml",
        "replace -f map-stale.yaml",
        "replace -f map.yaml",
        "replace -f map.yaml",
        "get configmap settings -o yaml --show-managed-fields",
        "replace -f pending.yaml --force --grace-period=0",
        "replace -f template.yaml",
        "set image pod/one main=example.com/app:2",
        "set image pod/one other=example.com/app:2",
        "get pod one -o jsonpath='{.spec.containers[0].image} {.metadata.generation}'",
        "scale --replicas=2 pod/one",
        "scale --replicas=2 composabilityrequest/two",
        "rollout status pod/one",
        "expose pod nobody --port=80",
    ),
    Step("set env pod/one COLOUR=red", at_a_glance=True),
    Step("edit configmap settings", editor="sed -i s/green/yellow/"),
    Step("edit configmap settings", editor="sed -i s/green/yellow/"),
    Step("edit configmap settings -o json", editor="sed -i s/yellow/black/"),
    Step("edit configmap nothing", editor="true"),
    *steps(
        "get configmap settings -o yaml --show-managed-fields",
        "apply --server-side -f shared.yaml --dry-run=server",
        "apply --server-side -f shared.yaml",
        "apply --server-side -f shared.yaml",
        "get configmap shared -o yaml --show-managed-fields",
        "apply --server-side -f shared-other.yaml --field-manager=other",
        "apply --server-side -f shared-other.yaml --field-manager=other --force-conflicts --dry-run=server -o yaml",
        "apply --server-side -f shared-other.yaml --field-manager=other --force-conflicts",
        "get configmap shared -o yaml --show-managed-fields",
        "apply --server-side -f shared-less.yaml",
        "get configmap shared -o yaml --show-managed-fields",
        "diff --server-side -f shared-other.yaml --field-manager=third",
        "apply -f shared.yaml",
        "apply --server-side -f shared.yaml",
        "apply --server-side -f map-unknown.yaml",
        "apply --server-side -f pod.yaml --field-manager=kubectl",
        "apply --server-side -f pod.yaml --force-conflicts --field-manager=kubectl",
        "apply --server-side -f pod-invalid.yaml",
        "apply --server-side -f map-stale.yaml",
    ),
)
CHANGING = (
    *patched(
        "configmap settings",
        *("merge", '{"data": {"size": null, "new": "x"}}'),
        *("merge", '{"data": {"new": "x"}}'),
        *("json", '[{"op": "replace", "path": "/data/new", "value": "y"}]'),
        *("json", '[{"op": "test", "path": "/data/new", "value": "z"}]'),
        *("json", '[{"op": "remove", "path": "/data/nothing"}]'),
        *("json", '[{"op": "jump", "path": "/data/new"}]'),
        *("json", '{"op": "remove"}'),
        *("merge", '{"data": {"new": 3}}'),
        *("merge", '{"data": {"new": '),
        *("strategic", '{"data": {"$patch": "replace", "only": "this"}}'),
        *("strategic", '{"$patch": "jump"}'),
        *("merge", '{"metadata": {"name": "other"}}'),
        *("merge", '{"metadata": {"resourceVersion": "1"}, "data": {"a": "b"}}'),
        *("merge", '{"metadata": {"uid": "b1e5c6f0-0000-4000-8000-000000000000"}}'),
        *("merge", '{"kind": "Secret"}'),
        *("merge", '{"metadata": {"finalizers": ["example.com/x"]}, "dat": {"x": "y"}}'),
        *("merge", '{"metadata": {"finalizers": null}}'),
        *("spoon", "{}"),
    ),
    *patched(
        "pod one",
        *("strategic", '{"spec": {"containers": [{"name": "main", "image": "example.com/app:3"}]}}'),
        *("strategic", '{"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}}'),
        *("merge", '{"spec": {"activeDeadlineSeconds": 600}}'),
        *("merge", '{"status": {"phase": "Running"}}'),
    ),
    Step('patch pod one --type=merge -p \'{"spec": {"nodeName": "node-2"}}\'', at_a_glance=True),
    *steps(
        "patch pod one --subresource=status --type=merge -p '"
        '{"status": {"phase": "Running", "podIP": "192.0.2.7", "podIPs": [{"ip": "192.0.2.7"}], "startTime": '
        '"2026-01-01T00:00:00Z", "containerStatuses": [{"name": "main", "ready": true, "restartCount": 2, "image": '
        '"example.com/app:4", "imageID": "", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]}}\'',
        "get pod one -o wide",
        "get pod one -o yaml --show-managed-fields",
        "describe pod one",
        "patch pod nobody -p '{}'",
        'patch -f map.yaml --type=merge -p \'{"data": {"from": "file"}}\' -o yaml',
        'patch configmap settings --type=merge -p \'{"data": {"dry": "run"}}\' --dry-run=server -o yaml',
        "patch composableresource nobody -p '{\"spec\": {}}'",
        "label pod one tier=back",
        "label pod one tier=back --overwrite",
        "label pod one tier=back",
        "label pods -l app=one colour=red size=large",
        "label pod one colour- size- --resource-version=1",
        "label pod one colour- size-",
        "label pod one nothing-",
        "label pod one 'bad key=x'",
        "label pod one key='bad value'",
        "label node node-2 --list",
        "label node node-1 example.com/rack=a",
        "label namespace lab purpose=test --dry-run=server",
        "label --all namespaces nothing-",
        "label configmap plain app=plain --field-manager=me",
        "annotate pod one example.com/note=second",
        "annotate pod one example.com/note=second --overwrite",
        "annotate pod one example.com/note-",
        "annotate pod one --list",
        "annotate configmap plain a=b -o jsonpath={.metadata.annotations}",
        "get configmap plain -o yaml --show-managed-fields",
    ),
)
NODES = (
    *steps(
        "taint node node-1 example.com/a=b:NoSchedule",
        "taint node node-1 example.com/a=b:NoSchedule",
        "taint node node-1 example.com/a=c:NoSchedule --overwrite",
        "taint node node-1 example.com/a=b:Sometimes",
        "taint nodes --all example.com/all:PreferNoSchedule",
        "describe node node-1",
        "taint node node-1 example.com/a:NoSchedule- example.com/all-",
        "taint node node-1 example.com/a-",
        "taint node node-2 example.com/all-",
        "cordon node-2",
        "cordon node-2",
        "get nodes",
        "get node node-2 -o yaml",
        "cordon node-9",
        "uncordon node-2 --dry-run=server",
        "uncordon node-2",
        "create -f short.yaml",
        "wait --for=jsonpath={.spec.nodeName}=node-2 pod/short",
        "drain node-2 --dry-run=server",
        "drain node-2",
        "drain node-2 --ignore-daemonsets --force",
        "drain node-2 --ignore-daemonsets --force --delete-emptydir-data --dry-run=server",
        "drain node-2 --ignore-daemonsets --force --delete-emptydir-data",
        "get pods -l app=short",
        "describe node node-2",
        "drain node-1 --force --delete-emptydir-data --timeout=2s --pod-selector=app=one --dry-run=client",
        "uncordon node-2",
        "create -f short.yaml",
        "wait --for=jsonpath={.spec.nodeName}=node-2 pod/short",
        "drain node-2 --force --delete-emptydir-data --disable-eviction",
        "uncordon node-2",
        "label node node-1 example.com/rack-",
        "delete node node-9",
    ),
)
DEVICES = (
    *steps(
        "create -f devices.yaml",
        "get deviceclasses,resourceslices",
        "get resourceslices -o wide",
        "get resourceslice node-1-gpus -o yaml",
        "get resourceslices --field-selector spec.nodeName=node-1 -o name",
        "get resourceslices --field-selector spec.driver=gpu.example.com,spec.nodeName!=node-1",
        "describe deviceclass gpu",
        "describe resourceslice node-1-gpus",
        "create -f claim-invalid.yaml",
        "create -f claim.yaml",
        "get resourceclaim big -o yaml",
        "get resourceclaims",
        "create -f template.yaml",
        "get resourceclaimtemplate any -o yaml",
        "describe resourceclaimtemplate any",
        "create -f claimants.yaml",
        "wait --for=jsonpath={.status.allocation.devices.results[0].device} resourceclaim/big",
        "wait --for=condition=PodScheduled pod/trainer pod/tester",
        "get pods -l app=gpu -o wide",
        "get resourceclaims -A",
        "get resourceclaim big -o yaml --show-managed-fields",
        "describe resourceclaim big",
        "get resourceclaims -l made=from-template -o yaml",
        "describe pod trainer",
        "get pod tester -o yaml",
        "create -f too-many.yaml",
        "wait --for=condition=PodScheduled=False pod/late",
        "get pod late -o jsonpath={.status.conditions}",
        "describe pod late",
        "delete pod late",
        'patch resourceclaim big --type=merge -p \'{"spec": {"devices": {"requests": []}}}\'',
        'patch resourceclaim big --subresource=status --type=merge -p \'{"status": {"allocation": null}}\'',
        'patch resourceslice node-1-gpus --type=merge -p \'{"spec": {"driver": "other.example.com"}}\'',
        'patch deviceclass gpu --type=merge -p \'{"spec": {"selectors": [{"cel": {"expression": "1"}}]}}\'',
        "create -f taint-rule.yaml",
        "get devicetaintrules",
        "get devicetaintrule broken -o jsonpath={.spec}",
        "delete devicetaintrule broken",
    ),
    Step(
        "wait --for=delete resourceclaim -l made=from-template --timeout=20s",
        meanwhile=(Step("delete pod trainer tester --grace-period=0 --force"),),
    ),
    *steps(
        "wait --for=jsonpath='{.metadata.finalizers}' resourceclaim/big --timeout=1s",
        "delete resourceclaim big",
        "delete resourceclaims --all",
        "delete -f devices.yaml -f template.yaml",
    ),
)
OURS = steps(
    "create -f request.yaml",
    "create -f request-invalid.yaml",
    "create -f request-invalid.yaml --validate=false",
    "apply -f resource.yaml",
    "apply -f resource.yaml",
    "get composabilityrequests",
    "get creq,cres -o wide",
    "get cohdi",
    "get composableresource gpu-1 -o yaml --show-managed-fields",
    "get cres --field-selector spec.target_node=node-1 -o name",
    "get cres --field-selector spec.model=A100",
    "describe composableresource gpu-1",
    "describe creq two",
    'patch cres gpu-1 --type=merge -p \'{"spec": {"model": "H100"}}\'',
    'patch cres gpu-1 --type=merge -p \'{"spec": {"colour": "red"}}\'',
    'patch cres gpu-1 --type=merge -p \'{"spec": {"type": 3}}\'',
    'patch cres gpu-1 --type=strategic -p \'{"spec": {"model": "H100"}}\'',
    'patch cres gpu-1 --type=json -p \'[{"op": "remove", "path": "/spec/type"}]\'',
    'patch cres gpu-1 --type=merge --subresource=status -p \'{"status": {"state": "Attaching"}}\'',
    "get cres",
    "wait --for=jsonpath={.status.state}=Attaching cres/gpu-1",
    "get cres gpu-1 -o yaml --show-managed-fields",
    "label cres gpu-1 a=b",
    "annotate creq two c=d",
    "apply --server-side -f request.yaml",
    "apply --server-side -f request.yaml --field-manager=other",
    "diff -f request.yaml",
    "scale --replicas=2 creq/two",
    "delete creq,cres --all",
    "explain composableresource.spec",
    "explain composabilityrequests.spec.resource",
    "explain composabilityrequests --recursive",
    "explain composabilityrequest.spec.nothing",
    "explain cres.status --recursive --api-version=cro.hpsys.ibm.ie.com/v1alpha1",
    "explain spoons",
)
TELLING = steps(
    "create -f events.yaml",
    "get events --field-selector involvedObject.name=one,reason!=Scheduled",
    "get events --field-selector type=Warning,reason=Failed -o wide",
    "get event one.failed -o yaml",
    "events --for pod/one --types=Warning",
    "events --for pod/nobody",
    "describe pod one",
    "delete events --field-selector involvedObject.name=one,reason!=Scheduled",
)
WATCHING = (
    Step(
        "get configmaps -w -l watched --request-timeout=7s",
        meanwhile=(
            Step("create configmap w-0"),
            Step("label configmap w-0 watched=yes"),
            Step('patch configmap w-0 --type=merge -p \'{"data": {"a": "b"}}\''),
            Step("label configmap w-0 watched-"),
            Step("label configmap w-0 watched=again"),
            Step("delete configmap w-0"),
        ),
    ),
    Step(
        "get pods --watch-only --output-watch-events -l app=w --request-timeout=6s",
        meanwhile=(
            Step('run w-1 --image=x -l app=w --overrides=\'{"spec": {"schedulerName": "nobody"}}\''),
            Step("annotate pod w-1 a=b"),
            Step("delete pod w-1"),
        ),
    ),
    Step(
        "wait --for=delete configmap/w-2 --timeout=20s",
        meanwhile=(Step("get configmap w-2"),),
    ),
    Step(
        "wait --for=create configmap/w-3 --timeout=20s",
        meanwhile=(Step("create configmap w-3"),),
    ),
    Step(
        "wait --for=jsonpath={.data.a}=b configmap/w-3 --timeout=20s",
        meanwhile=(Step('patch configmap w-3 -p \'{"data": {"a": "b"}}\''),),
    ),
    Step(
        "wait --for=delete configmap/w-3 --timeout=20s",
        meanwhile=(Step("delete configmap w-3"),),
    ),
    *steps(
        "wait --for=condition=Ready pod/one --timeout=1s",
        "wait --for=condition=PodScheduled pod/one",
        "wait --for=create configmap/never --timeout=1s",
        "wait --for=condition=Ready node --all",
        "wait --for=condition=Ready pod/nobody",
        "wait --for=jsonpath={.status.phase}=Running pod --all --timeout=1s",
    ),
)
DELETING = (
    *family("background"),
    *family("foreground"),
    *steps("get configmap child"),
    *family("orphan"),
    *steps("get configmap child -o jsonpath={.metadata.ownerReferences}", "delete configmap -l part=family"),
    *steps(
        "create -f held.yaml",
        "delete configmap held --timeout=1s",
        "delete configmap held --wait=false",
        "get configmap held -o yaml",
        'patch configmap held --type=merge -p \'{"metadata": {"finalizers": ["example.com/more"]}}\'',
        'patch configmap held --type=merge -p \'{"metadata": {"finalizers": null}}\'',
        "get configmap held",
        "delete pod one --dry-run=server",
        "delete pod one --now --wait=false",
        "get pod one -o jsonpath={.metadata.deletionGracePeriodSeconds}",
        "get pod one",
        "delete pod one --grace-period=0 --force",
        "delete pod one",
        "delete pod one --ignore-not-found",
        "delete pods -l app=gen",
        "delete configmap plain piped settings shared --dry-run=client",
        "delete configmap plain piped settings shared",
        "delete -f several.yaml",
        "delete -f several.yaml",
        "delete pods --all",
        "delete pods --all",
        "delete spoon silver",
        "delete configmap",
        "delete secret,serviceaccount -l nothing",
        "delete namespace default",
        "create -n lab -f held.yaml",
        'run left --image=x -n lab --overrides=\'{"spec": {"schedulerName": "nobody"}}\'',
        "delete namespace lab --wait=false",
        "create configmap late -n lab",
        "get namespace lab",
    ),
    Step(
        "wait --for=delete namespace/lab --timeout=40s",
        meanwhile=(
            Step('patch -n lab configmap held --type=merge -p \'{"metadata": {"finalizers": null}}\''),
        ),
    ),
    *steps(
        "get all,configmaps -n lab",
        "delete namespace lab",
        "delete --raw /api/v1/namespaces/default/configmaps/nothing",
    ),
    Step("create --raw /api/v1/namespaces/default/configmaps -f -", '{"metadata": {"name": "raw"}}'),
    Step("replace --raw /api/v1/namespaces/default/configmaps/raw -f -", '{"metadata": {"name": "other"}}'),
    Step("create --raw /api/v1/namespaces/default/configmaps -f -", '{"kind": "Secret", "apiVersion": "v1"}'),
    Step("create --raw /api/v1/namespaces/default/configmaps -f -", "{"),
    Step("create --raw /api/v1/namespaces/default/configmaps -f -", '{"metadata": {"namespace": "lab"}}'),
    Step("create --raw /api/v1/namespaces/default/configmaps -f -", '{"metadata": {}}'),
    Step("create --raw /api/v1/configmaps -f -", '{"metadata": {"name": "raw"}}'),
    Step("create --raw /api/v1/namespaces/default/configmaps/raw -f -", '{"metadata": {"name": "raw"}}'),
    Step("create --raw /api/v1/namespaces/default/configmaps?fieldValidation=Strict -f -", TWICE),
    Step("create --raw /api/v1/namespaces/default/configmaps?fieldValidation=Sometimes -f -", TWICE),
    *steps("delete --raw /api/v1/namespaces/default/configmaps/raw", "delete --raw /api/v1/namespaces"),
)

CHAPTERS: Mapping[str, tuple[Step, ...]] = {
    "looking round": LOOKING_ROUND,
    "creating": CREATING,
    "reading": READING,
    "applying": APPLYING,
    "changing": CHANGING,
    "nodes": NODES,
    "devices": DEVICES,
    "ours": OURS,
    "telling": TELLING,
    "watching": WATCHING,
    "deleting": DELETING,
}
"""The chapters follow one another: each finds what the ones before it have left."""
