/** A researcher: it reads source after source for as long as it takes, and never starts again from the first one. */
import { readFile } from 'node:fs/promises';
import { setTimeout as think } from 'node:timers/promises';
import { openStore, openTransport, type wire } from 'hcp-sdk';
import { acceptKnownCallers, createCallee, type Executor, TaskFailure } from 'hcp-sdk/callee';

const declaration: wire.Capability = {
  name: 'research.mentions',
  version: '1.0.0',
  description: 'Counts how often a word is mentioned in many sources',
  input_schema: {
    type: 'object',
    required: ['word', 'sources'],
    properties: { word: { type: 'string' }, sources: { type: 'array', items: { type: 'string' } } },
  },
  output_schema: { type: 'object', required: ['mentions'] },
  safety: { risk_ceiling: 'R1', requires_human_approval: false, involves_physical_resources: false },
  extensions: ['resume/1'],
};

/** What is known after a number of sources: all that is needed to go on. */
interface Findings {
  readonly read: number;
  readonly mentions: number;
}

const research: Executor = async ({ inputs }, run) => {
  const { word, sources } = inputs as { word: string; sources: string[] }; // the input schema says so
  // Written by us: after a restart of this process, or in a session that a new task continues.
  let { read, mentions } = (run.resumedFrom?.data as Findings | undefined) ?? { read: 0, mentions: 0 };
  for (const source of sources.slice(read)) {
    await think(50, undefined, { signal: run.signal });
    mentions += (await textOf(source)).split(/\W+/).filter((found) => found === word).length;
    read++;
    await run.progress({ stage: 'reading', percent: (100 * read) / sources.length, message: String(read) });
    await run.checkpoint({ read, mentions } satisfies Findings, { description: `${read} of ${sources.length} read` });
  }
  return { outputs: { mentions } };
};

async function textOf(source: string): Promise<string> {
  try {
    return await readFile(source, 'utf8');
  } catch (cause) {
    throw new TaskFailure('resource_unavailable', `${source} cannot be read`, { cause });
  }
}

const [url = ''] = process.argv.slice(2);
const [transport, store] = await Promise.all([openTransport(url), openStore(url)]);
const policy = acceptKnownCallers(['editor']);
// A name that stays: the process that comes back under it goes on at once with what its former life left.
const callee = createCallee({ calleeId: 'library', instanceId: 'desk-1', transport, store, policy });
callee.capability(declaration, research);
await callee.start();
process.send?.('ready');
process.once('disconnect', () => process.exit()); // whoever started us is gone
