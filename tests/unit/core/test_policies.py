"""What is wrong with a policy is said field by field; a sound one is passed."""

import pytest
from msgspec.structs import replace

from jackfield.core import policies
from jackfield.model.names import FabricName, ModelName, NodeName, PhysicalID, Seconds
from jackfield.model.policy import DeviceModel, Foreign, LocalDevices, NamespaceRule, NodeGroup, Policy

SOUND = DeviceModel(1, ModelName("A100 80G"), "a100")


def of(*models: DeviceModel) -> Policy:
    return Policy(models=models)


def local(name: str, vendor: str = "", device: str = "", pci_class: str = "") -> Policy:
    return Policy(local_devices=(LocalDevices(name, vendor, device, pci_class),))


def ruled(*rules: NamespaceRule) -> Policy:
    return Policy(models=(SOUND,), namespaces=rules)


@pytest.mark.parametrize(
    "policy",
    [
        Policy(),
        of(SOUND),
        of(
            replace(SOUND, index=0),
            replace(SOUND, index=10_000, cdi_model_name=ModelName("T4"), k8s_device_name="t4"),
        ),
        of(replace(SOUND, k8s_device_name="a" * 50)),
        of(replace(SOUND, k8s_device_name="a-1", type="cxlmemory", spares=3)),
        of(SOUND, DeviceModel(2, ModelName("T4"), "a1000", cannot_coexist_with=(1,))),
        of(replace(SOUND, driver_name=f"{'d' * 55}.example")),
        of(replace(SOUND, dra_attributes={f"key-{number}": "v" * 64 for number in range(32)})),
        Policy(hold_seconds=Seconds(0.0), attach_seconds=Seconds(0.0)),
        Policy(per_node_min=3, per_node_max=3, claim_attempts_max=1),
        Policy(node_groups=(NodeGroup("big", max_size=0),)),
        ruled(
            NamespaceRule("team-a", {"A100 80G": 2, "*": 4}, 10), NamespaceRule("team-*"), NamespaceRule("*")
        ),
        Policy(hold_seconds=Seconds(float("inf"))),
        local("gpu", "10de", "20b0", "0302"),
        local("gpu", pci_class="12"),
        Policy(detach_foreign=(Foreign(node=NodeName("n1")), Foreign(device=PhysicalID("7")))),
        replace(
            of(SOUND), detach_foreign=(Foreign(model=SOUND.cdi_model_name, fabric=FabricName("rack-a")),)
        ),
    ],
)
def test_a_sound_policy_has_no_fault(policy: Policy) -> None:
    assert policies.faults(policy) == ()


@pytest.mark.parametrize(
    ("policy", "fault"),
    [
        (of(replace(SOUND, index=-1)), "models[0].index: -1 is not between 0 and 10000"),
        (of(replace(SOUND, index=10_001)), "models[0].index: 10001"),
        (of(replace(SOUND, cdi_model_name=ModelName(""))), "models[0].cdi-model-name: must not be empty"),
        (of(replace(SOUND, k8s_device_name="A100")), "models[0].k8s-device-name: 'A100' is not a DNS label"),
        (of(replace(SOUND, k8s_device_name="a" * 51)), "of at most 50 characters"),
        (of(replace(SOUND, k8s_device_name="-a")), "models[0].k8s-device-name: '-a'"),
        (
            of(replace(SOUND, driver_name="Bad_Driver")),
            "models[0].driver-name: 'Bad_Driver' is not a DNS subdomain",
        ),
        (of(replace(SOUND, driver_name=f"{'d' * 60}.dev")), "at most 63 characters"),
        (of(replace(SOUND, type="")), "models[0].type: '' is not a word"),
        (of(replace(SOUND, type="cxl memory")), "models[0].type: 'cxl memory'"),
        (of(replace(SOUND, spares=-1)), "models[0].spares: -1 is negative"),
        (
            of(replace(SOUND, dra_attributes={f"{n}": "" for n in range(33)})),
            "models[0].dra-attributes: 33 are more than 32",
        ),
        (
            of(replace(SOUND, dra_attributes={"key": "v" * 65})),
            "models[0].dra-attributes[key]: 65 characters",
        ),
        (
            of(replace(SOUND, cannot_coexist_with=(7,))),
            "models[0].cannot-coexist-with: no model has the index 7",
        ),
        (
            of(SOUND, DeviceModel(2, ModelName("L"), "a100-large")),
            "models[0].k8s-device-name: 'a100' begins 'a100-large'",
        ),
        (of(SOUND, DeviceModel(1, ModelName("T4"), "t4")), "models: two have the index 1"),
        (of(SOUND, DeviceModel(2, ModelName("A100 80G"), "t4")), "two have the cdi-model-name 'A100 80G'"),
        (of(SOUND, DeviceModel(2, ModelName("T4"), "a100")), "two have the k8s-device-name 'a100'"),
        (Policy(hold_seconds=Seconds(-1.0)), "holdSeconds: -1 is negative"),
        (Policy(blame_seconds=Seconds(-0.5)), "blameSeconds: -0.5 is negative"),
        (Policy(poll_seconds=Seconds(0.0)), "pollSeconds: must be more than 0"),
        (Policy(inventory_seconds=Seconds(0.0)), "inventorySeconds: must be more than 0"),
        (Policy(resync_seconds=Seconds(0.0)), "resyncSeconds: must be more than 0"),
        (Policy(binding_timeout_seconds=Seconds(0.0)), "bindingTimeoutSeconds: must be more than 0"),
        (Policy(binding_margin_seconds=Seconds(600.0)), "bindingMarginSeconds: must be less"),
        (Policy(per_node_min=-1), "perNodeMin, perNodeMax: -1 and 50 are no range"),
        (Policy(per_node_min=3, per_node_max=2), "perNodeMin, perNodeMax: 3 and 2"),
        (Policy(claim_attempts_max=0), "claimAttemptsMax: 0 is less than 1"),
        (Policy(label_prefix="Not A Domain"), "labelPrefix: 'Not A Domain'"),
        (Policy(node_groups=(NodeGroup("Big"),)), "nodeGroups[0]: needs a DNS label"),
        (Policy(node_groups=(NodeGroup("big"), NodeGroup("huge", max_size=-1))), "nodeGroups[1]: "),
        (Policy(missing_seconds=Seconds(-1.0)), "missingSeconds: -1 is negative"),
        (Policy(hold_seconds=Seconds(float("nan"))), "holdSeconds: nan is no number"),
        (ruled(NamespaceRule("Team")), "namespaces[0].name: 'Team' is no namespace's name"),
        (ruled(NamespaceRule("a" * 64)), "namespaces[0].name: "),
        (
            ruled(NamespaceRule("team-*"), NamespaceRule("team-a")),
            "namespaces[1].name: 'team-a' never counts",
        ),
        (ruled(NamespaceRule("a", {"*": -1})), "namespaces[0].quota.*: -1 is negative"),
        (
            ruled(NamespaceRule("a", {"T4": 1})),
            "namespaces[0].quota.T4: is not the cdi-model-name of any model",
        ),
        (Policy(identities=()), "identities: must name at least one"),
        (local("GPU", "10de"), "localDevices[0].name: 'GPU' is not a DNS label"),
        (local("g" * 41, "10de"), "of at most 40 characters"),
        (local("gpu", device="20b0"), "localDevices[0]: must name a vendor or a pciClass"),
        (local("gpu", "0x10de"), "localDevices[0].vendor: '0x10de' is not four hexadecimal digits"),
        (local("gpu", "10de", "20B0"), "localDevices[0].device: '20B0' is not four hexadecimal digits"),
        (local("gpu", pci_class="030"), "localDevices[0].pciClass: '030' is not two, four or six"),
        (Policy(detach_foreign=(Foreign(),)), "detachForeign[0]: must name a device, a model or a node"),
        (
            Policy(detach_foreign=(Foreign(PhysicalID("7")), Foreign(fabric=FabricName("rack-a")))),
            "detachForeign[1]: must name a device, a model or a node",
        ),
        (
            Policy(detach_foreign=(Foreign(model=ModelName("T4")),)),
            "detachForeign[0].model: 'T4' is not among models",
        ),
    ],
)
def test_a_fault_names_its_field(policy: Policy, fault: str) -> None:
    (found,) = policies.faults(policy)
    assert fault in found


def test_all_faults_are_told_at_once() -> None:
    wrong = replace(SOUND, index=-1, type="", spares=-2)
    assert len(policies.faults(Policy(models=(SOUND, wrong), claim_attempts_max=0))) == 6
    # the index, the type and the spares of one model; two names that the models share; the number of attempts


def test_a_fault_names_the_place_of_its_model() -> None:
    other = DeviceModel(2, ModelName("T4"), "t4", spares=-1)
    assert policies.faults(of(SOUND, other)) == ("models[1].spares: -1 is negative",)
