import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { EventHandler } from '../../caller/index.ts';
import { listParked, type ParkedEvent, retryParked } from '../../caller/parked-events.ts';
import type { Store } from '../../shared/store/store.ts';
import { countOf, sessionOf, textOf } from '../arguments.ts';
import type { Call, Command } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { readInput } from '../files.ts';
import { complain, jsonLine, table, tame } from '../output.ts';
import { storeToRead } from '../stored.ts';
import { moment } from '../times.ts';
import { UsageError } from '../usage-error.ts';

const LIMIT = 100;
const MOST = 1000;

const list: Command = {
  name: 'parked list',
  summary: 'the events a caller could not process, the oldest first; in full with --json',
  options: { limit: { type: 'string', value: 'N', about: `how many at most, up to ${MOST} (${LIMIT})` } },
  examples: ['hcp parked list --caller-id alpha'],
  async run({ values, json, io, workplace }) {
    const limit = countOf(values, 'limit') ?? LIMIT;
    if (limit > MOST) throw new UsageError(`--limit is ${MOST} at most`);
    const parked = await listParked(await storeToRead(workplace), workplace.callerId, limit);
    if (json) io.out(jsonLine(parked.map(parkedJson)));
    else if (parked.length === 0) io.out(`Caller ${workplace.callerId} has no parked event`);
    else for (const line of table([HEADINGS, ...parked.map(cells)])) io.out(line);
    return EXIT.ok;
  },
};

const retry: Command = {
  name: 'parked retry',
  summary: 'give a parked event to a handler again, or let go of it',
  arguments: '<session> <sequence>',
  arity: [2, 2],
  options: {
    handler: { type: 'string', value: 'MODULE', about: 'a module that exports onEvent(event, tx)' },
    discard: { type: 'boolean', about: 'forget the event: nobody will process it' },
  },
  examples: [
    'hcp parked retry 0b7f6a52-6d0a-4a38-9f6e-3c8f0a5a1f11 7 --caller-id alpha --handler ./on-event.ts',
    'hcp parked retry 0b7f6a52-6d0a-4a38-9f6e-3c8f0a5a1f11 7 --caller-id alpha --discard',
  ],
  async run(call) {
    const { values, positionals, json, io, workplace } = call;
    const sessionId = sessionOf(call);
    const sequence = sequenceOf(positionals[1] ?? '');
    const path = textOf(values, 'handler');
    const isDiscarded = values.discard === true;
    if ((path === undefined) !== isDiscarded) throw new UsageError('parked retry needs --handler or --discard');
    const handler = path === undefined ? discard : await loadHandler(path, call);
    const store = await storeToRead(workplace);
    const key = [workplace.callerId, sessionId, sequence] as const;
    if (!(await isParked(store, key))) {
      complain(call, 'not_parked', `No event ${sequence} of session ${sessionId} is parked by ${workplace.callerId}`);
      return EXIT.notFound;
    }
    await retryParked(store, handler, key);
    const outcome = isDiscarded ? 'discarded' : 'processed';
    io.out(json ? jsonLine({ session_id: sessionId, sequence, outcome }) : `Event ${sequence} was ${outcome}`);
    return EXIT.ok;
  },
};

export const parkedCommands: readonly Command[] = [list, retry];

/** Any an event can have. */
function sequenceOf(text: string): number {
  const sequence = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(sequence)) throw new UsageError('<sequence> must be a number');
  return sequence;
}

const discard: EventHandler = () => {};

/** The module runs in this process, inside the transaction that removes the event. */
async function loadHandler(path: string, { io }: Call): Promise<EventHandler> {
  await readInput(path, io);
  const module: Readonly<Record<string, unknown>> = await import(pathToFileURL(resolve(path)).href);
  if (typeof module.onEvent !== 'function') throw new UsageError(`${path} exports no function onEvent`);
  // Whoever names the module answers for what the function takes.
  return module.onEvent as EventHandler;
}

async function isParked(store: Store, key: readonly [string, string, number]): Promise<boolean> {
  return (await store.get('parked', key))?.kind === 'failed';
}

function parkedJson({ sessionId, sequence, reason, parkedAt, event }: ParkedEvent): object {
  const at = new Date(parkedAt).toISOString();
  return { session_id: sessionId, sequence, parked_at: at, reason, event };
}

const HEADINGS = ['SESSION', 'SEQUENCE', 'EVENT', 'PARKED (UTC)', 'REASON'];

function cells({ sessionId, sequence, reason, parkedAt, event }: ParkedEvent): string[] {
  return [sessionId, String(sequence), tame(event.payload.event_type), moment(parkedAt), tame(reason)];
}
