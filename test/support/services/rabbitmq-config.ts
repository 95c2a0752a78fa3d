import type { RabbitmqSettings } from './description.ts';

/** The files {@link tlsListener} refers to: names and content. */
export function tlsFiles({ tls }: RabbitmqSettings): readonly (readonly [name: string, pem: string])[] {
  if (tls === undefined) return [];
  return [
    ['ca.crt', tls.ca],
    ['server.crt', tls.cert],
    ['server.key', tls.key],
  ];
}

/** Lines of `rabbitmq.conf`. A client certificate is checked when there is one, and its common name may be the login. */
export function tlsListener({ tls }: RabbitmqSettings, address: string, folder: string): string {
  if (tls === undefined) return '';
  return `listeners.ssl.1 = ${address}
ssl_options.cacertfile = ${folder}/ca.crt
ssl_options.certfile = ${folder}/server.crt
ssl_options.keyfile = ${folder}/server.key
ssl_options.verify = verify_peer
ssl_options.fail_if_no_peer_cert = false
ssl_cert_login_from = common_name
auth_mechanisms.1 = PLAIN
auth_mechanisms.2 = AMQPLAIN
auth_mechanisms.3 = EXTERNAL
`;
}

/** The content of `enabled_plugins`, an Erlang list. */
export function plugins({ tls }: RabbitmqSettings): string {
  const names = ['rabbitmq_consistent_hash_exchange', ...(tls === undefined ? [] : ['rabbitmq_auth_mechanism_ssl'])];
  return `[${names.join(',')}].\n`;
}
