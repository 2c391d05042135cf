"""The embedded cluster's HTTP face: what a kube-apiserver says to kubectl, said over the store."""
