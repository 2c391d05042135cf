{{/* The image, by digest if there is one. */}}
{{- define "jackfield.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end }}
{{- end }}
{{- end }}

{{/* Metadata of a pod. Called with (dict "root" $ "component" NAME "values" VALUES "read" TEXT): TEXT is what a pod reads only once. */}}
{{- define "jackfield.podMetadata" -}}
labels:
  {{- include "jackfield.labels" . | nindent 2 }}
  {{- with .values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
annotations:
  kubectl.kubernetes.io/default-container: {{ .component }}
  {{- with .read }}
  jackfield.dev/configuration: {{ sha256sum . | trunc 32 }}
  {{- end }}
  {{- with .values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* Where pods run. Called with (dict "root" $ "values" VALUES). */}}
{{- define "jackfield.placement" -}}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Who a pod is that needs nothing of its node. The user is nobody's elsewhere; volumes are given to its group. */}}
{{- define "jackfield.unprivilegedPod" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "jackfield.unprivilegedContainer" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* Whether a process lives, and whether it is of use. Called with the name of the port. */}}
{{- define "jackfield.probes" -}}
livenessProbe:
  httpGet: {path: /healthz, port: {{ . }}}
  initialDelaySeconds: 10
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: {{ . }}}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end }}
