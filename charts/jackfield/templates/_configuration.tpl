{{/* The drivers whose claims the controllers write on, as JSON: those of the policy's models, or of CoHDI's. */}}
{{- define "jackfield.drivers" -}}
{{- $drivers := .Values.cohdi.takeOver | ternary .Values.cohdi.drivers list }}
{{- range .Values.policy.models }}
{{- $drivers = append $drivers (index . "driver-name" | default "fabric.jackfield.dev") }}
{{- end }}
{{- $drivers | default (list "fabric.jackfield.dev") | uniq | sortAlpha | toJson }}
{{- end }}

{{/* Where a fabric's Secret is mounted. */}}
{{- define "jackfield.secretFolder" -}}
/etc/jackfield/secrets/{{ .name }}
{{- end }}

{{/* All fabrics as values, the chart's own manager among them, as YAML under "fabrics". */}}
{{- define "jackfield.fabrics" -}}
{{- $all := .Values.fabrics }}
{{- with .Values.fabricManager }}
{{- if .enabled }}
{{- $own := dict "name" .inventory.fabric "type" "native" "existingSecret" .existingSecret "tokenKey" "token" }}
{{- $host := printf "jackfield-fabric-manager.%s.svc:8471" $.Release.Namespace }}
{{- if .tls.existingSecret }}
{{- $_ := set $own "url" (printf "https://%s" $host) }}
{{- $_ := set $own "caFile" "/etc/jackfield/fabric-manager/ca.crt" }}
{{- else }}
{{- $_ := set $own "url" (printf "http://%s" $host) }}
{{- $_ := set $own "insecure" true }}
{{- end }}
{{- $all = append $all $own }}
{{- end }}
{{- end }}
{{- dict "fabrics" $all | toYaml }}
{{- end }}

{{/* The file that `jackfield run --fabrics` reads. */}}
{{- define "jackfield.fabricsFile" -}}
{{- $written := list }}
{{- range (include "jackfield.fabrics" . | fromYaml).fabrics }}
{{- $one := omit . "existingSecret" "tokenKey" "caKey" }}
{{- $folder := include "jackfield.secretFolder" . }}
{{- if .tokenKey }}
{{- $_ := set $one "tokenFile" (printf "%s/%s" $folder .tokenKey) }}
{{- end }}
{{- if .caKey }}
{{- $_ := set $one "caFile" (printf "%s/%s" $folder .caKey) }}
{{- end }}
{{- $written = append $written $one }}
{{- end }}
{{- dict "fabrics" $written | toYaml }}
{{- end }}
