---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: jackfield-controllers
  namespace: '{{ .Release.Namespace }}'
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: jackfield-shared
rules:
- apiGroups:
  - ''
  resources:
  - nodes
  verbs:
  - list
  - watch
- apiGroups:
  - ''
  resources:
  - pods
  verbs:
  - list
  - watch
- apiGroups:
  - ''
  resources:
  - events
  verbs:
  - get
  - create
  - patch
- apiGroups:
  - resource.k8s.io
  resources:
  - resourceslices
  verbs:
  - list
  - watch
  - create
- apiGroups:
  - resource.k8s.io
  resources:
  - resourceclaims
  verbs:
  - list
  - watch
- apiGroups:
  - resource.k8s.io
  resources:
  - devicetaintrules
  verbs:
  - list
  - watch
- apiGroups:
  - cro.hpsys.ibm.ie.com
  resources:
  - composabilityrequests
  verbs:
  - list
  - watch
- apiGroups:
  - cro.hpsys.ibm.ie.com
  resources:
  - composableresources
  verbs:
  - list
  - watch
- apiGroups:
  - apiextensions.k8s.io
  resources:
  - customresourcedefinitions
  verbs:
  - get
  - create
  - patch
  resourceNames:
  - composabilityrequests.cro.hpsys.ibm.ie.com
  - composableresources.cro.hpsys.ibm.ie.com
- apiGroups:
  - ''
  resources:
  - namespaces
  verbs:
  - get
  resourceNames:
  - jackfield-node
  - jackfield-controllers
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: jackfield-shared:{{ .Release.Namespace }}:jackfield-controllers
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: jackfield-shared
subjects:
- kind: ServiceAccount
  name: jackfield-controllers
  namespace: '{{ .Release.Namespace }}'
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: jackfield-shared
  namespace: jackfield-node
rules:
- apiGroups:
  - coordination.k8s.io
  resources:
  - leases
  verbs:
  - list
  - watch
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: jackfield-shared:{{ .Release.Namespace }}:jackfield-controllers
  namespace: jackfield-node
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: jackfield-shared
subjects:
- kind: ServiceAccount
  name: jackfield-controllers
  namespace: '{{ .Release.Namespace }}'
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: jackfield-shared
  namespace: jackfield-controllers
rules:
- apiGroups:
  - coordination.k8s.io
  resources:
  - leases
  verbs:
  - get
  - list
  - watch
  - create
  - patch
  - delete
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: jackfield-shared:{{ .Release.Namespace }}:jackfield-controllers
  namespace: jackfield-controllers
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: jackfield-shared
subjects:
- kind: ServiceAccount
  name: jackfield-controllers
  namespace: '{{ .Release.Namespace }}'
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: jackfield-publisher
rules:
- apiGroups:
  - resource.k8s.io
  resources:
  - resourceslices
  verbs:
  - patch
- apiGroups:
  - ''
  resources:
  - nodes
  verbs:
  - patch
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: jackfield-publisher:{{ .Release.Namespace }}:jackfield-controllers
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: jackfield-publisher
subjects:
- kind: ServiceAccount
  name: jackfield-controllers
  namespace: '{{ .Release.Namespace }}'
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: jackfield-scaler
rules:
- apiGroups:
  - cro.hpsys.ibm.ie.com
  resources:
  - composabilityrequests
  verbs:
  - create
  - patch
  - delete
- apiGroups:
  - cro.hpsys.ibm.ie.com
  resources:
  - composableresources
  verbs:
  - create
  - patch
- apiGroups:
  - resource.k8s.io
  resources:
  - resourceclaims
  verbs:
  - get
  - patch
- apiGroups:
  - resource.k8s.io
  resources:
  - resourceclaims/status
  verbs:
  - patch
- apiGroups:
  - resource.k8s.io
  resources:
  - resourceclaims/driver
  verbs:
  - arbitrary-node:patch
  resourceNames: {{ include "jackfield.drivers" . }}
- apiGroups:
  - resource.k8s.io
  resources:
  - resourceclaims/binding
  verbs:
  - patch
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: jackfield-scaler:{{ .Release.Namespace }}:jackfield-controllers
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: jackfield-scaler
subjects:
- kind: ServiceAccount
  name: jackfield-controllers
  namespace: '{{ .Release.Namespace }}'
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: jackfield-operator
rules:
- apiGroups:
  - cro.hpsys.ibm.ie.com
  resources:
  - composabilityrequests
  verbs:
  - get
  - patch
- apiGroups:
  - cro.hpsys.ibm.ie.com
  resources:
  - composabilityrequests/status
  verbs:
  - patch
- apiGroups:
  - cro.hpsys.ibm.ie.com
  resources:
  - composableresources
  verbs:
  - get
  - create
  - patch
  - delete
- apiGroups:
  - cro.hpsys.ibm.ie.com
  resources:
  - composableresources/status
  verbs:
  - patch
- apiGroups:
  - resource.k8s.io
  resources:
  - devicetaintrules
  verbs:
  - create
  - delete
- apiGroups:
  - ''
  resources:
  - nodes
  verbs:
  - patch
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: jackfield-operator:{{ .Release.Namespace }}:jackfield-controllers
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: jackfield-operator
subjects:
- kind: ServiceAccount
  name: jackfield-controllers
  namespace: '{{ .Release.Namespace }}'
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: jackfield-autoscaler
rules:
- apiGroups:
  - ''
  resources:
  - nodes
  verbs:
  - create
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: jackfield-autoscaler:{{ .Release.Namespace }}:jackfield-controllers
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: jackfield-autoscaler
subjects:
- kind: ServiceAccount
  name: jackfield-controllers
  namespace: '{{ .Release.Namespace }}'
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: jackfield-migration
  namespace: composable-dra
rules:
- apiGroups:
  - ''
  resources:
  - configmaps
  verbs:
  - get
  resourceNames:
  - composable-dra-dds
- apiGroups:
  - ''
  resources:
  - secrets
  verbs:
  - get
  resourceNames:
  - composable-dra-secret
- apiGroups:
  - apps
  resources:
  - deployments
  verbs:
  - list
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: jackfield-migration:{{ .Release.Namespace }}:jackfield-controllers
  namespace: composable-dra
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: jackfield-migration
subjects:
- kind: ServiceAccount
  name: jackfield-controllers
  namespace: '{{ .Release.Namespace }}'
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: jackfield-migration
  namespace: composable-resource-operator-system
rules:
- apiGroups:
  - apps
  resources:
  - deployments
  verbs:
  - list
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: jackfield-migration:{{ .Release.Namespace }}:jackfield-controllers
  namespace: composable-resource-operator-system
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: jackfield-migration
subjects:
- kind: ServiceAccount
  name: jackfield-controllers
  namespace: '{{ .Release.Namespace }}'
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: jackfield-migration
rules:
- apiGroups:
  - ''
  resources:
  - namespaces
  verbs:
  - get
  resourceNames:
  - composable-dra
  - composable-resource-operator-system
- apiGroups:
  - metal3.io
  resources:
  - baremetalhosts
  verbs:
  - list
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: jackfield-migration:{{ .Release.Namespace }}:jackfield-controllers
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: jackfield-migration
subjects:
- kind: ServiceAccount
  name: jackfield-controllers
  namespace: '{{ .Release.Namespace }}'
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: jackfield-node
  namespace: '{{ .Release.Namespace }}'
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: jackfield-node
rules:
- apiGroups:
  - cro.hpsys.ibm.ie.com
  resources:
  - composableresources
  verbs:
  - list
  - watch
  - patch
- apiGroups:
  - cro.hpsys.ibm.ie.com
  resources:
  - composableresources/status
  verbs:
  - patch
- apiGroups:
  - resource.k8s.io
  resources:
  - resourceclaims
  verbs:
  - get
- apiGroups:
  - resource.k8s.io
  resources:
  - resourceslices
  verbs:
  - list
  - watch
  - create
  - patch
  - delete
- apiGroups:
  - ''
  resources:
  - nodes
  verbs:
  - get
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: jackfield-node:{{ .Release.Namespace }}:jackfield-node
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: jackfield-node
subjects:
- kind: ServiceAccount
  name: jackfield-node
  namespace: '{{ .Release.Namespace }}'
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: jackfield-node
  namespace: jackfield-node
rules:
- apiGroups:
  - coordination.k8s.io
  resources:
  - leases
  verbs:
  - create
  - patch
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: jackfield-node:{{ .Release.Namespace }}:jackfield-node
  namespace: jackfield-node
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: jackfield-node
subjects:
- kind: ServiceAccount
  name: jackfield-node
  namespace: '{{ .Release.Namespace }}'
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: jackfield-node
  namespace: default
rules:
- apiGroups:
  - ''
  resources:
  - events
  verbs:
  - create
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: jackfield-node:{{ .Release.Namespace }}:jackfield-node
  namespace: default
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: jackfield-node
subjects:
- kind: ServiceAccount
  name: jackfield-node
  namespace: '{{ .Release.Namespace }}'
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: jackfield-node
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - apiGroups:
      - cro.hpsys.ibm.ie.com
      apiVersions:
      - '*'
      operations:
      - UPDATE
      resources:
      - composableresources
      - composableresources/status
    - apiGroups:
      - resource.k8s.io
      apiVersions:
      - '*'
      operations:
      - CREATE
      - UPDATE
      - DELETE
      resources:
      - resourceslices
    - apiGroups:
      - coordination.k8s.io
      apiVersions:
      - '*'
      operations:
      - CREATE
      - UPDATE
      resources:
      - leases
    - apiGroups:
      - ''
      apiVersions:
      - '*'
      operations:
      - CREATE
      resources:
      - events
  matchConditions:
  - name: is-the-plugin
    expression: request.userInfo.username == 'system:serviceaccount:{{ .Release.Namespace }}:jackfield-node'
  variables:
  - name: node
    expression: '''authentication.kubernetes.io/node-name'' in request.userInfo.extra ? request.userInfo.extra[''authentication.kubernetes.io/node-name''][0]
      : '''''
  - name: it
    expression: 'request.operation == ''DELETE'' ? oldObject : object'
  validations:
  - expression: variables.node != ''
    message: the token does not say which node its pod runs on
  - expression: request.resource.resource != 'composableresources' || (object.spec.target_node == variables.node
      && oldObject.spec.target_node == variables.node)
    message: a node's plugin may write only on ComposableResources of its node
  - expression: request.resource.resource != 'resourceslices' || (has(variables.it.spec.nodeName) && variables.it.spec.nodeName
      == variables.node && variables.it.spec.driver == 'node.jackfield.dev')
    message: a node's plugin may publish only devices of its node, as node.jackfield.dev
  - expression: request.resource.resource != 'leases' || (object.metadata.name == variables.node)
    message: a node's plugin may renew only its own Lease
  - expression: request.resource.resource != 'events' || (object.involvedObject.kind == 'Node' && object.involvedObject.name
      == variables.node)
    message: a node's plugin may write only Events about its node
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: jackfield-node
spec:
  policyName: jackfield-node
  validationActions:
  - Deny
