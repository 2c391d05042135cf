{{/* Labels of every object. Called with (dict "root" $ "component" NAME). */}}
{{- define "jackfield.labels" -}}
{{ include "jackfield.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: jackfield
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | quote }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* What never changes, so that it can select. One Jackfield fits a cluster, so the release has no say in it. */}}
{{- define "jackfield.selector" -}}
app.kubernetes.io/name: jackfield
app.kubernetes.io/component: {{ .component }}
{{- end }}
