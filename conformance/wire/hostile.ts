import { bytes, type RawMessage, textOf } from './raw.ts';

/** A body nobody can make sense of, or must not. */
export interface HostileBody {
  readonly name: string;
  /** The end of a sentence about a message: `whose body …`. */
  readonly whose: string;
  readonly requirements: readonly string[];
  /** HCP does not forbid it: who can read it may take it. @default false */
  readonly isReadable?: boolean;
  /** Spoils a message that was good. */
  spoil(message: RawMessage): Uint8Array;
}

const DEEP = 100_000;
const LARGE = 1024 * 1024 + 1;

/** Ways to spoil a body so that no field of it can be trusted. */
export const HOSTILE_BODIES: readonly HostileBody[] = [
  { name: 'empty', whose: 'body is empty', requirements: ['V-30', 'V-31'], spoil: () => new Uint8Array() },
  {
    name: 'not-json',
    whose: 'body is not JSON',
    requirements: ['V-30', 'V-31'],
    spoil: () => bytes('Hello, please do this for me'),
  },
  {
    name: 'cut-off',
    whose: 'body is cut off',
    requirements: ['V-30', 'V-31'],
    spoil: (message) => message.body.slice(0, -2),
  },
  {
    name: 'trailing',
    whose: 'body goes on behind the object',
    requirements: ['HCP-001', 'V-31'],
    spoil: (message) => bytes(`${textOf(message)}{}`),
  },
  {
    name: 'not-utf8',
    whose: 'body is not UTF-8',
    requirements: ['HCP-001', 'V-30', 'V-31'],
    spoil: (message) => {
      const [before = '', after = ''] = textOf(message).split('"intent":"');
      return Buffer.concat([bytes(`${before}"intent":"`), Buffer.from([0xc3, 0x28, 0xff]), bytes(after)]);
    },
  },
  {
    name: 'utf16',
    whose: 'body is UTF-16',
    requirements: ['HCP-001', 'V-31'],
    spoil: (message) => Buffer.from(`\ufeff${textOf(message)}`, 'utf16le'),
  },
  { name: 'array', whose: 'body is an array', requirements: ['HCP-001', 'V-31'], spoil: () => bytes('[]') },
  { name: 'null', whose: 'body is null', requirements: ['HCP-001', 'V-31'], spoil: () => bytes('null') },
  { name: 'number', whose: 'body is a number', requirements: ['HCP-001', 'V-31'], spoil: () => bytes('1e999') },
  {
    name: 'too-deep',
    whose: 'body is nested 100,000 levels deep',
    requirements: ['HCP-007'],
    spoil: () => bytes('['.repeat(DEEP) + ']'.repeat(DEEP)),
  },
  {
    name: 'deep-field',
    whose: 'context is nested 10,000 levels deep',
    requirements: ['HCP-007'],
    isReadable: true,
    spoil: (message) => bytes(textOf(message).replace('"payload":{', `"payload":{"context":${nested(10_000)},`)),
  },
  {
    name: 'duplicate-key',
    whose: 'body names two capabilities',
    requirements: ['HCP-001', 'HCP-007'],
    isReadable: true,
    spoil: (message) => bytes(textOf(message).replace('"payload":{', '"payload":{"capability":"other",')),
  },
  {
    name: 'proto-key',
    whose: 'inputs hold nothing but a __proto__',
    requirements: ['HCP-007', 'V-43'],
    spoil: (message) =>
      bytes(textOf(message).replace('"inputs":{', '"inputs":{"__proto__":{"script":[]}},"unknown":{')),
  },
  {
    name: 'too-large',
    whose: 'body is larger than 1 MiB',
    requirements: ['HCP-012', 'V-60'],
    spoil: (message) => bytes(textOf(message).replace('"payload":{', `"payload":{"context":${many(LARGE)},`)),
  },
];

function nested(levels: number): string {
  return `${'{"a":'.repeat(levels)}0${'}'.repeat(levels)}`;
}

/** In pieces: one text of that size would break another limit as well. */
function many(size: number): string {
  return JSON.stringify({ references: Array.from({ length: Math.ceil(size / 1000) }, () => 'x'.repeat(1000)) });
}
