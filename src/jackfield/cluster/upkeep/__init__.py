"""kube-controller-manager: claims from templates, namespaces, and what belongs to nobody any more."""
