import { isUtf8 } from 'node:buffer';
import { appendFileSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { type Clock, systemClock } from '../../shared/clock.ts';
import type { Route } from '../../shared/transport/topology.ts';
import type { ReceivedProperties } from '../../shared/transport/transport.ts';
import { Scrubber } from './scrub.ts';

/** A message of a recording, as it passed but for its tokens. */
export interface RecordedMessage {
  readonly direction: 'sent' | 'received';
  /** Since the recording began. */
  readonly atMs: number;
  readonly route: Route;
  readonly properties: ReceivedProperties;
  readonly body: Buffer;
}

const FORMAT = 1;

/** Writes a recording: a line that says so, then one line for each message, on disk when `add` returns. */
export class RecordingWriter {
  readonly #file: string | URL;
  readonly #clock: Clock;
  readonly #startedAt: number;
  readonly #scrubber = new Scrubber();

  /** Throws where the file exists already. */
  constructor(file: string | URL, clock: Clock = systemClock) {
    this.#file = file;
    this.#clock = clock;
    this.#startedAt = clock.now();
    const head = { hcp_recording: FORMAT, started_at: new Date(this.#startedAt).toISOString() };
    writeFileSync(file, `${JSON.stringify(head)}\n`, { flag: 'wx', mode: 0o600 });
  }

  add(
    direction: RecordedMessage['direction'],
    { route, properties, body }: { route: Route; properties: ReceivedProperties; body: Uint8Array },
  ): void {
    const bytes = this.#scrubber.scrub(body);
    const line = {
      direction,
      at_ms: this.#clock.now() - this.#startedAt,
      route,
      properties: JSON.parse(this.#scrubber.scrub(Buffer.from(JSON.stringify(properties))).toString()),
      ...(isUtf8(bytes) ? { body: bytes.toString() } : { body_base64: bytes.toString('base64') }),
    };
    appendFileSync(this.#file, `${JSON.stringify(line)}\n`);
  }
}

/** The messages of a recording, in order. Rejects with `TypeError` for a file that is none. */
export async function readRecording(file: string | URL): Promise<readonly RecordedMessage[]> {
  const [head = '', ...lines] = (await readFile(file, 'utf8')).trimEnd().split('\n');
  if (formatOf(head) !== FORMAT) throw new TypeError(`${file} is no recording of a session, or of a newer version`);
  return lines.map((text): RecordedMessage => {
    const { direction, at_ms: atMs, route, properties, body, body_base64: base64 } = JSON.parse(text);
    return {
      direction,
      atMs,
      route,
      properties,
      body: Buffer.from(body ?? base64, body === undefined ? 'base64' : 'utf8'),
    };
  });
}

function formatOf(head: string): unknown {
  try {
    return JSON.parse(head).hcp_recording;
  } catch {
    return undefined;
  }
}
