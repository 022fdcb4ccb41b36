#!/bin/sh
# Creates the files that deploy/compose.yaml needs and no repository may hold: a separate secret for each purpose in deploy/.env, and a
# self-signed certificate in deploy/compose/tls. Never changes existing files.
#
#   sh deploy/compose/prepare.sh [folder]      folder: defaults to that of compose.yaml
set -eu
folder=${1:-$(dirname "$0")/..}
env=$folder/.env
tls=$folder/compose/tls

if [ -e "$env" ]; then
  echo "$env exists already and stays unchanged."
else
  (
    umask 077 # readable by its owner only
    for name in MYSQL_PASSWORD MYSQL_ROOT_PASSWORD REDIS_PASSWORD ROCKETMQ_ACCESS_SECRET MESSAGE_KEY JWT_SECRET \
      ADMISSION_SIGN_KEY ADMISSION_SEAL_KEY PAYMENT_WEBHOOK_SECRET GRAFANA_PASSWORD; do
      echo "$name=$(openssl rand -hex 32)"
    done >"$env"
  )
  echo "$env has a new secret for each purpose. Keep it: the data of the servers is useless without it."
fi

mkdir -p "$tls"
for name in buyers operators; do
  if [ -e "$tls/$name.key" ]; then
    echo "$tls/$name.key exists already."
  else
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 90 -subj /CN=localhost \
      -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout "$tls/$name.key" -out "$tls/$name.crt" 2>/dev/null
    chmod 644 "$tls/$name.key" # for nginx, which runs as another user; replace this certificate before you publish the ports
    echo "$tls/$name.crt is self-signed. Use it on your own machine only."
  fi
done
