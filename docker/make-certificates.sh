#!/bin/sh
# Makes a CA, a server and a client certificate for compose.tls.yaml, in docker/certificates (ignored by git).
# For development only: the keys have no passphrase, and everybody on this machine may read the server's.
# Usage: make-certificates.sh [client name]     (default: alpha)
set -eu

client=${1:-alpha}
folder=$(dirname "$0")/certificates
mkdir -p "$folder"
cd "$folder"
umask 077

# ca.crt and server.crt stay when they exist, so that a second client can be added without a new start.
if [ ! -f ca.crt ]; then
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -days 825 -keyout ca.key -out ca.crt \
    -subj '/CN=hcp development CA' -addext 'basicConstraints=critical,CA:TRUE' -addext 'keyUsage=critical,keyCertSign,cRLSign'
fi

# issue <file> <common name> <extended key usage> <alternative names>
issue() {
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -keyout "$1.key" -out "$1.csr" -subj "/CN=$2"
  printf 'basicConstraints=CA:FALSE\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=%s\nsubjectAltName=%s\n' "$3" "$4" >"$1.ext"
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 397 -extfile "$1.ext" -out "$1.crt"
  cat "$1.crt" "$1.key" >"$1.pem"
  rm "$1.csr" "$1.ext"
}

if [ ! -f server.crt ]; then
  # clientAuth too: a replica set member logs in to itself with the same certificate.
  issue server localhost serverAuth,clientAuth 'DNS:localhost,DNS:rabbitmq,DNS:mongodb,IP:127.0.0.1,IP:::1'
fi
issue "client-$client" "$client" clientAuth "DNS:$client"

# The servers run as users of their containers, which are nobody here.
chmod 755 .
chmod 644 ca.crt server.crt server.key server.pem
