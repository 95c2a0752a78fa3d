import { fault, type MessageFault, pointerStep } from './fault.ts';
import { inspectJson } from './json-value.ts';
import type { MessageLimits } from './limits.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Bytes to a JSON value, refusing whatever could hurt before it is built. */
export function decodeJson(
  bytes: Uint8Array,
  limits: MessageLimits,
): { readonly value: unknown } | { readonly fault: MessageFault } {
  if (bytes.byteLength > limits.bodyBytes) {
    return refuse('body_too_large', `The body has ${bytes.byteLength} bytes, allowed are ${limits.bodyBytes}`);
  }
  const shape = measure(bytes, limits);
  if (typeof shape === 'string') {
    const bound = shape === 'too_deep' ? `${limits.depth} levels` : `${limits.keys} keys`;
    return refuse(shape, `The body has more than ${bound}`);
  }
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    return refuse('not_utf8', 'The body is not UTF-8');
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's own message quotes the text, which may hold a token.
    return refuse(
      'not_json',
      text.startsWith('\ufeff') ? 'The body starts with a byte order mark' : 'The body is not JSON',
    );
  }
  const inspection = inspectJson(value, limits);
  if (inspection.fault) return { fault: inspection.fault };
  // JSON.parse keeps the last of two equal keys: then the value has fewer keys than the text has colons.
  if (inspection.keys !== shape.keys) {
    return { fault: fault('duplicate_key', duplicatePointer(text), 'other', 'An object has the same key twice') };
  }
  return { value };
}

function refuse(code: 'body_too_large' | 'too_deep' | 'too_many_keys' | 'not_utf8' | 'not_json', message: string) {
  return { fault: fault(code, '', 'bytes', message) };
}

/** Depth and number of keys, straight from the bytes: `JSON.parse` takes a million levels, and then nothing else can. */
function measure(bytes: Uint8Array, limits: MessageLimits): { keys: number } | 'too_deep' | 'too_many_keys' {
  let depth = 0;
  let keys = 0;
  for (let i = 0; i < bytes.length; i++) {
    switch (bytes[i]) {
      case QUOTE:
        i = endOfString(bytes, i);
        break;
      case OPEN_ARRAY:
      case OPEN_OBJECT:
        if (++depth > limits.depth) return 'too_deep';
        break;
      case CLOSE_ARRAY:
      case CLOSE_OBJECT:
        depth--;
        break;
      case COLON:
        if (++keys > limits.keys) return 'too_many_keys';
        break;
    }
  }
  return { keys };
}

/** Index of the closing quote. No byte of a multi-byte UTF-8 character looks like a quote or a backslash. */
function endOfString(bytes: Uint8Array, start: number): number {
  let i = start + 1;
  while (i < bytes.length && bytes[i] !== QUOTE) i += bytes[i] === BACKSLASH ? 2 : 1;
  return i;
}

interface Level {
  readonly keys: Set<string> | undefined;
  step: string | number;
}

/** Where the first repeated key is. Only for text that `JSON.parse` accepted, and only once something is wrong. */
function duplicatePointer(text: string): string {
  const levels: Level[] = [];
  const token = /"(?:[^"\\]|\\.)*"(\s*:)?|[[\]{},]/g;
  for (const [lexeme, colon] of text.matchAll(token)) {
    const level = levels.at(-1);
    if (lexeme === '{') levels.push({ keys: new Set(), step: '' });
    else if (lexeme === '[') levels.push({ keys: undefined, step: 0 });
    else if (lexeme === '}' || lexeme === ']') levels.pop();
    else if (lexeme === ',' && level && typeof level.step === 'number') level.step++;
    else if (colon !== undefined && level?.keys) {
      level.step = JSON.parse(lexeme.slice(0, lexeme.length - colon.length)) as string;
      if (level.keys.has(level.step)) break;
      level.keys.add(level.step);
    }
  }
  return levels.map(({ step }) => pointerStep(step)).join('');
}
