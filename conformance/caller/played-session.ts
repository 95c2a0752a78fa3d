import { isDeepStrictEqual } from 'node:util';
import { expectThat } from '../wire/expect.ts';
import type { CallerBench } from './bench.ts';
import { type PlayedCallee, type Said, type Saying, tokenOf } from './played-callee.ts';
import type { ReportLine } from './report-file.ts';

/** A session of the caller under test, as the kit plays it: events by their numbers, and what came of them. */
export class PlayedSession {
  readonly sessionId: string;
  readonly #bench: CallerBench;
  readonly #callee: PlayedCallee;
  readonly #said = new Map<number, Said>();

  constructor(bench: CallerBench, sessionId: string) {
    this.sessionId = sessionId;
    this.#bench = bench;
    this.#callee = bench.callee;
  }

  /** E1 and E2, as every session begins. */
  async begin(): Promise<this> {
    const data = { state: 'PENDING', risk_level: 'R1', session_token: tokenOf(this.sessionId) };
    await this.event(1, 'session_created', data);
    await this.move(2, 'PENDING', 'RUNNING', 'safety_check_passed');
    return this;
  }

  /** `progress` events with these numbers; a number that was told before is told again, byte for byte. */
  async report(...sequences: readonly number[]): Promise<void> {
    for (const sequence of sequences) {
      await this.event(sequence, 'progress', { stage: 'conformance', message: `Event ${sequence}` });
    }
  }

  async event(sequence: number, type: string, data: object, saying?: Saying): Promise<void> {
    const said = this.#said.get(sequence) ?? this.compose(sequence, type, data, saying);
    this.#said.set(sequence, said);
    await this.#callee.send(said);
  }

  /** An event with this for a number, whatever that is; remembered by nobody. */
  odd(sequence: unknown, type: string, data: unknown, saying?: Saying): Promise<void> {
    return this.#callee.send(this.compose(sequence, type, data, saying));
  }

  compose(sequence: unknown, type: string, data: unknown, saying?: Saying): Said {
    return this.#callee.compose('event', this.sessionId, { event_type: type, sequence, data }, saying);
  }

  /** Asks the caller under test for something: see the guide. */
  ask(sequence: number, stage: 'abort' | 'hold'): Promise<void> {
    return this.event(sequence, 'progress', { stage, message: `Please ${stage}` });
  }

  move(sequence: number, from: string, to: string, reason: string): Promise<void> {
    return this.event(sequence, 'state_changed', { from_state: from, to_state: to, reason });
  }

  closed(sequence: number, finalState: string, reason: string): Promise<void> {
    return this.event(sequence, 'session_closed', { final_state: finalState, reason });
  }

  complete(): Promise<void> {
    return this.#callee.say('task_completed', this.sessionId, { outputs: { done: true } });
  }

  fail(code: string): Promise<void> {
    const payload = { error_code: code, error_message: 'It did not work', error_details: {} };
    return this.#callee.say('task_failed', this.sessionId, payload);
  }

  /** The result, the last transition and the end, as a good callee tells them. */
  async finish(sequence: number): Promise<void> {
    await this.complete();
    await this.move(sequence, 'RUNNING', 'COMPLETED', 'task_completed');
    await this.closed(sequence + 1, 'COMPLETED', 'task_completed');
  }

  /** Its events that were handled, in the order of the file. */
  get handled(): number[] {
    return this.#lines.flatMap(({ event_type, sequence }) =>
      event_type === undefined || sequence === undefined ? [] : [sequence],
    );
  }

  get outcomes(): ReportLine[] {
    return this.#lines.filter(({ outcome }) => outcome !== undefined);
  }

  /** Where the first line that fits is in the file; -1: nowhere. */
  lineOf(fits: (line: ReportLine) => boolean): number {
    return this.#bench.report.lines.findIndex((line) => line.session_id === this.sessionId && fits(line));
  }

  /** Resolves when just these events were handled, in this order. Sooner or later that shows: the last one comes last. */
  async sees(...sequences: readonly number[]): Promise<void> {
    const isDecided = () => {
      const { handled } = this;
      const isAstray = handled.some((sequence, index) => sequence !== sequences[index]);
      return isAstray || handled.length >= sequences.length ? true : undefined;
    };
    const what = () => `events ${list(sequences)} to be handled; so far: ${list(this.handled)}`;
    await this.#bench.until(what, isDecided);
    const { handled } = this;
    const sentence = `The handler should have seen events ${list(sequences)}, and saw ${list(handled)}`;
    expectThat(isDeepStrictEqual(handled, sequences), sentence);
  }

  /** Resolves with the first outcome that was told of it. */
  outcome(): Promise<ReportLine> {
    return this.#bench.until(
      () => `the outcome of session ${this.sessionId}`,
      () => this.outcomes[0],
    );
  }

  async ends(outcome: string): Promise<void> {
    const told = await this.outcome();
    if (told.outcome !== outcome) throw new Error(`The task should have ended ${outcome}, not ${told.outcome}`);
  }

  get #lines(): ReportLine[] {
    return this.#bench.report.lines.filter(({ session_id }) => session_id === this.sessionId);
  }
}

function list(sequences: readonly number[]): string {
  return sequences.length === 0 ? 'none' : sequences.join(', ');
}
