{{- define "seckill.fullname" -}}
{{- $default := contains .Chart.Name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) -}}
{{- default $default .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- /* Host and port of the shop, as buyers reach it. Empty if unknown. */ -}}
{{- define "seckill.shop" -}}
{{- $ingress := .Values.ingress -}}
{{- $host := ternary $ingress.host "" $ingress.enabled -}}
{{- default (empty $host | ternary "" (printf "%s:443" $host)) .Values.podMonitor.shop -}}
{{- end }}

{{- /* Selects the pods of a program, or all pods of the release: dict "root" $ ["program" "api"] */ -}}
{{- define "seckill.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- with .program }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end }}

{{- /* Names and labels an object: dict "root" $ ["program" "api"] ["name" "operators", the program by default] */ -}}
{{- define "seckill.metadata" -}}
name: {{ include "seckill.fullname" .root }}{{ with default .program .name }}-{{ . }}{{ end }}
labels:
  helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
  app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ .root.Release.Service }}
  {{- include "seckill.selector" . | nindent 2 }}
{{- end }}

{{- /* Writes a number without an exponent. Helm holds 345600000 as 3.456e+08. */ -}}
{{- define "seckill.text" -}}
{{- if and (kindIs "float64" .) (eq . (floor .)) }}{{ int64 . }}{{ else }}{{ . }}{{ end -}}
{{- end }}

{{- /* Sets the variables of a container: dict "root" $ "program" "api" "own" the values of the program, or an empty dict.
`env` of the program wins over `env` of all pods, and both win over the chart, so that each variable is set once. */ -}}
{{- define "seckill.env" -}}
{{- $values := .root.Values -}}
{{- $taken := dict -}}
{{- $env := default list .own.env -}}
{{- range $env }}{{ $_ := set $taken .name true }}{{ end -}}
{{- range $values.env }}{{ if not (hasKey $taken .name) }}{{ $env = append $env . }}{{ end }}{{ end -}}
{{- range $env }}{{ $_ := set $taken .name true }}{{ end -}}
{{- $program := .program }}
{{- range $group := .root.Files.Get "settings.yaml" | fromYamlArray }}
{{- if has $program $group.readers }}
{{- range $name := $group.settings }}
{{- if and (hasKey $values.settings $name) (not (hasKey $taken $name)) }}
- name: {{ $name }}
  value: {{ include "seckill.text" (get $values.settings $name) | quote }}
{{- end }}
{{- end }}
{{- range $name, $needed := $group.secrets }}
{{- $file := printf "%s_FILE" $name }}
{{- if not (or (get $values.settings $file) (hasKey $taken $file) (hasKey $taken $name)) }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef: { name: {{ $values.secretName }}, key: {{ $name }}, optional: {{ not $needed }} }
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- with $env }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* A container as all programs have it: dict "root" $ "program" "api" "args" list "own" values "resources" dict */ -}}
{{- define "seckill.container" -}}
{{- $all := .root.Values.image -}}
{{- $own := default dict .own.image -}}
{{- $image := empty (or $own.digest $own.tag) | ternary $all $own -}}
- name: {{ .program }}
  image: {{ $all.repository }}{{ if $image.digest }}@{{ $image.digest }}{{ else }}:{{ default .root.Chart.AppVersion $image.tag }}{{ end }}
  imagePullPolicy: {{ $all.pullPolicy }}
  args: {{ toJson .args }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities: { drop: [ALL] }
  env:
    {{- include "seckill.env" . | trim | nindent 4 }}
  {{- with concat .root.Values.extraVolumeMounts (default list .own.extraVolumeMounts) }}
  volumeMounts:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  resources:
    {{- toYaml .resources | nindent 4 }}
{{- end }}

{{- /* The part of a pod's spec that all pods share: dict "root" $ "own" the values of the program, or an empty dict */ -}}
{{- define "seckill.pod" -}}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001 # may read what is mounted
  seccompProfile: { type: RuntimeDefault }
{{- $values := .root.Values }}
{{- range $name := list "imagePullSecrets" "nodeSelector" "tolerations" "affinity" }}
{{- with get $values $name }}
{{ $name }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- with concat $values.extraVolumes (default list .own.extraVolumes) }}
volumes:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
