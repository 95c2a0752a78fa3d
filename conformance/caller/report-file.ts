import { readFileSync } from 'node:fs';

/** What a caller under test tells, one JSON object per line. Fields the kit does not know are ignored. */
export interface ReportLine {
  readonly session_id?: string | null;
  /** With `event_type`: its handler has seen this event. */
  readonly sequence?: number;
  readonly event_type?: string;
  /** Its handler has this event in hand and does not return. */
  readonly holding?: boolean;
  /** How a task of its ended. */
  readonly outcome?: string;
  /** The `error_code` or `reason_code` that came with it, or any word for an error of its own. */
  readonly code?: string;
}

/** The file a caller under test writes, read by the kit. */
export class ReportFile {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** What it has told so far; a line that is not yet ended does not count. */
  get lines(): readonly ReportLine[] {
    return this.#text()
      .split('\n')
      .slice(0, -1)
      .map((line, index) => parse(line, index + 1));
  }

  #text(): string {
    try {
      return readFileSync(this.path, 'utf8');
    } catch {
      return ''; // nothing was told yet
    }
  }
}

function parse(line: string, number: number): ReportLine {
  try {
    const value: unknown = JSON.parse(line);
    // Its fields are only ever compared.
    if (typeof value === 'object' && value !== null) return value as ReportLine;
  } catch {
    // the same complaint
  }
  throw new Error(`Line ${number} of the report file is no JSON object: ${line.slice(0, 100)}`);
}
