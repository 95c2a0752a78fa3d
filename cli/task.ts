import type { Task } from '../caller/index.ts';
import type { DataClassification } from '../schemas/types.ts';
import { durationOf, textOf, textsOf } from './arguments.ts';
import type { Call, OptionSpec, Values } from './command.ts';
import { readInput } from './files.ts';
import { UsageError } from './usage-error.ts';

/** Options that say what is to be done. */
export const TASK_OPTIONS = {
  input: { type: 'string', value: 'JSON|@FILE|-', about: 'the inputs, an object: as JSON, from a file, or from stdin' },
  intent: { type: 'string', value: 'TEXT', about: 'the goal in words' },
  version: { type: 'string', value: 'RANGE', about: 'versions of the capability, as ^1.2' },
  'max-duration': { type: 'string', value: 'PT5M', about: 'how long it may take' },
  'data-class': { type: 'string', value: 'T1…T4', about: 'how sensitive the data is' },
  extension: {
    type: 'string',
    multiple: true,
    value: 'NAME[=JSON]',
    about: 'an extension it cannot do without, or one with parameters',
  },
} as const satisfies Record<string, OptionSpec>;

const DATA_CLASSES: readonly DataClassification[] = ['T1', 'T2', 'T3', 'T4'];

/** The task that was typed. Throws `UsageError` for what is none. */
export async function readTask(call: Call): Promise<Task> {
  const { values, positionals } = call;
  const [capability = ''] = positionals;
  const version = textOf(values, 'version');
  const constraints = readConstraints(values);
  return {
    capability,
    intent: textOf(values, 'intent') ?? intentFor(capability),
    inputs: await readInputs(call),
    ...(version !== undefined && { capability_version: version }),
    ...(Object.keys(constraints).length > 0 && { constraints }),
    // So that `hcp pause` works wherever it can.
    extensions: { 'pause/1': { required: false }, ...readExtensions(values) },
  };
}

/** How a task is typed. */
export function taskCommand({ capability, intent, inputs, capability_version, constraints, extensions }: Task): string {
  const options: [name: string, value: string | undefined][] = [
    ['input', JSON.stringify(inputs)],
    ['intent', intent === intentFor(capability) ? undefined : intent],
    ['version', capability_version],
    ['max-duration', constraints?.max_duration],
    ['data-class', constraints?.data_classification],
    ...Object.entries(extensions ?? {}).flatMap(([name, value]): [string, string][] =>
      name === 'pause/1' ? [] : [['extension', `${name}=${JSON.stringify(value)}`]],
    ),
  ];
  const typed = options.flatMap(([name, value]) => (value === undefined ? [] : [`--${name} ${quoted(value)}`]));
  return ['hcp submit', quoted(capability), ...typed].join(' ');
}

/** Where it was typed to work, to be typed again; not the URLs, which may hold passwords. */
export function typedPlace(values: Values): string {
  const names = ['db', 'callee-id', 'caller-id'];
  return names
    .flatMap((name) => (values[name] === undefined ? [] : [` --${name} ${quoted(String(values[name]))}`]))
    .join('');
}

/** A text as a shell takes it for one word. */
function quoted(text: string): string {
  return /^[\w.:/@^~-]+$/.test(text) && !text.startsWith('~') ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

function intentFor(capability: string): string {
  return `Do ${capability}`;
}

async function readInputs({ values, io }: Call): Promise<Record<string, unknown>> {
  const given = textOf(values, 'input') ?? '{}';
  const file = given === '-' ? given : given.startsWith('@') ? given.slice(1) : undefined;
  const inputs = parseJson(file === undefined ? given : Buffer.from(await readInput(file, io)).toString(), '--input');
  if (typeof inputs === 'object' && inputs !== null && !Array.isArray(inputs)) return inputs as Record<string, unknown>;
  throw new UsageError('--input must be a JSON object');
}

function readConstraints(values: Values): NonNullable<Task['constraints']> {
  const maxDuration = durationOf(values, 'max-duration');
  const given = textOf(values, 'data-class');
  const dataClass = DATA_CLASSES.find((known) => known === given);
  if (given !== undefined && dataClass === undefined) {
    throw new UsageError(`--data-class must be one of ${DATA_CLASSES.join(', ')}`);
  }
  return {
    ...(maxDuration !== undefined && { max_duration: maxDuration }),
    ...(dataClass !== undefined && { data_classification: dataClass }),
  };
}

function readExtensions(values: Values): Record<string, unknown> {
  return Object.fromEntries(
    textsOf(values, 'extension').map((given) => {
      const [, name = '', json] = /^([^=]+)(?:=(.*))?$/s.exec(given) ?? [];
      return [name, json === undefined ? { required: true } : parseJson(json, `--extension ${name}`)];
    }),
  );
}

function parseJson(text: string, option: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(`${option} must be JSON`);
  }
}
