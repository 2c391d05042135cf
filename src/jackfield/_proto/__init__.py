"""The kubelet's messages, generated from the files beside this one by `make proto`."""
