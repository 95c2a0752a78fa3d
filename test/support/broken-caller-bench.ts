import { fileURLToPath } from 'node:url';
import { type CallerBench, openCallerBench } from '../../conformance/caller/index.ts';
import type { CallerFlaw } from './broken-caller-flaws.ts';
import type { Stack } from './stacks.ts';

export const OUR_CALLER = commandFor('../../testing/conformance-caller.ts');
export const BROKEN_CALLER = commandFor('broken-caller.ts');

function commandFor(path: string): string {
  return `exec "${process.execPath}" "${fileURLToPath(new URL(path, import.meta.url))}"`;
}

/** A bench on a stack, with a link of its own. */
export async function benchOn(
  stack: Pick<Stack, 'transportUrl' | 'storeUrl' | 'connect'>,
  command: string,
  { flaw, waitMs = 20_000 }: { readonly flaw?: CallerFlaw; readonly waitMs?: number } = {},
): Promise<CallerBench> {
  const { HCP_AMQP_URL: _amqp, HCP_DB: _db, ...rest } = process.env;
  const path = /^sqlite:(.*)$/.exec(stack.transportUrl)?.[1];
  const place = path === undefined ? { HCP_AMQP_URL: stack.transportUrl } : { HCP_DB: path };
  const env = { ...rest, ...place, HCP_STORE_URL: stack.storeUrl, ...(flaw && { HCP_FLAW: flaw }) };
  const transport = await stack.connect();
  const bench = await openCallerBench({ transport, command, env, waitMs });
  const close = bench[Symbol.asyncDispose].bind(bench);
  return Object.assign(bench, {
    async [Symbol.asyncDispose]() {
      await close();
      await transport.close();
    },
  });
}
