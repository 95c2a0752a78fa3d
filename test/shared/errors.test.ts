import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { HCP_ERROR_CODES, HcpError, isHcpError } from '../../shared/errors.ts';
import { FAULT_RULES } from '../../shared/messages/fault.ts';

const docs = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8');
const documented = (heading: string) => {
  const part = docs.split(/^## /m).find((text) => text.startsWith(heading)) ?? '';
  return [...part.matchAll(/^### `(\w+)`$/gm)].map(([, code]) => code).sort();
};

describe('errors', () => {
  it('each code has its paragraph in docs/errors.md, and the other way round', () => {
    expect(documented('Errors')).toEqual([...HCP_ERROR_CODES].sort());
    expect(documented('Faults')).toEqual(Object.keys(FAULT_RULES).sort());
  });

  it('are told by code, also across two copies of the package', () => {
    const error: unknown = new HcpError('store_conflict', 'The row exists', { reason: 'exists' });
    const foreign = { [Symbol.for('hcp-sdk.HcpError')]: true, code: 'transport_lost' };
    expect([
      isHcpError(error, 'store_conflict'),
      isHcpError(error, 'transport_lost'),
      isHcpError(foreign, 'transport_lost'),
    ]).toEqual([true, false, true]);
    expect([isHcpError(new Error('x')), isHcpError(null), isHcpError('store_conflict')]).toEqual([false, false, false]);
  });

  it('say whether trying again can help, and keep their cause', () => {
    const cause = new Error('socket closed');
    const error = new HcpError('transport_lost', 'The link is gone', { cause });
    expect([error.retryable, error.cause]).toEqual([true, cause]);
    expect(new HcpError('transport_closed', 'Closed').retryable).toBe(false);
  });
});
