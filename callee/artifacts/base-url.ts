import { isLoopback } from '../../shared/loopback.ts';

/** What the URLs of artifacts begin with, without a slash at its end. Throws `TypeError`. */
export function parseBaseUrl(baseUrl: unknown, name: string): string {
  const url = typeof baseUrl === 'string' ? URL.parse(baseUrl) : null;
  // In the clear only on this machine: whoever sees the URL may fetch.
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(bareHost(url.hostname)));
  if (url === null || !isSafe) throw new TypeError(`${name} must be an https:// URL; http:// works on loopback alone`);
  if (url.search !== '' || url.hash !== '' || url.username !== '' || url.password !== '') {
    throw new TypeError(`${name} must have no query, no fragment and no credentials`);
  }
  return url.href.replace(/\/+$/, '');
}

/** An IPv6 address has brackets in a URL. */
function bareHost(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '');
}
