"""The nouns: frozen values in Kubernetes' own words, with no behaviour beyond themselves."""
