import { isIPv4 } from 'node:net';

/** Whether a host is this very machine. An address, not any name that begins like one: 127.example.com may be anywhere. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'));
}
