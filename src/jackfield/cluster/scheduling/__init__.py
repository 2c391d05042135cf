"""kube-scheduler, as far as pods with claims need it."""
