"""What is typed to wait for something, and to have it end: `get -w`, `wait`, `delete`."""

from real.kubectl.step import Step, steps

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
