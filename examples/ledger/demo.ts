/**
 * Money movements, booked exactly once by a program that is killed again and again. On RabbitMQ and MongoDB if
 * HCP_AMQP_URL and HCP_MONGODB_URL name them, else in two files. Ends with code 0 only if what it tells is true.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Outcome } from 'hcp-sdk/caller';
import { openBooks } from './books.ts';
import { movementsOf } from './movements.ts';

const BATCHES = [1, 2, 3].map((batch) => ({ batch, movements: 30 }));
const say = (who: string, what: string) => console.log(`  ${who.padEnd(10)} ${what}`);
const folder = mkdtempSync(join(tmpdir(), 'hcp-ledger-'));
const { HCP_AMQP_URL, HCP_MONGODB_URL } = process.env;
const transportUrl = HCP_AMQP_URL ?? `sqlite:${join(folder, 'queues.db')}`;
const booksUrl = HCP_MONGODB_URL ?? `sqlite:${join(folder, 'books.db')}`;
const children: ChildProcess[] = [];

/** What the caller's process says of itself. */
type Word = { entered: number } | { sessions: string[] } | { outcomes: Outcome[] };

console.log(`Queues in ${transportUrl.split(':')[0]}, books in ${booksUrl.split(':')[0]}\n`);
try {
  await using books = await openBooks(booksUrl);
  await books.clear();
  await once(start('callee.ts', transportUrl, booksUrl), 'message');

  let sessions: string[] = [];
  let outcomes: Outcome[] = [];
  let entered = 0;
  for (let deaths = 0; outcomes.length === 0; deaths++) {
    const inputs = [JSON.stringify(BATCHES), JSON.stringify(sessions)];
    const treasurer = start('caller.ts', transportUrl, booksUrl, ...inputs);
    const exited = once(treasurer, 'exit');
    let enteredNow = 0;
    treasurer.on('message', (word: Word) => {
      if ('sessions' in word) sessions = word.sessions;
      if ('outcomes' in word) outcomes = word.outcomes;
      if ('entered' in word) {
        entered++;
        enteredNow++;
      }
      // Wherever it is: before the commit, after it, before the ack.
      if (deaths < 2 && enteredNow >= 15 && sessions.length > 0) treasurer.kill('SIGKILL');
    });
    const [code, signal] = await exited;
    assert.ok(signal === 'SIGKILL' || code === 0, `The treasurer ended with code ${code}`);
    if (signal === 'SIGKILL') say('treasurer', `is killed with SIGKILL after ${entered} movements, and started again`);
    else assert.ok(deaths > 0, 'It was done before it could be killed');
  }

  const expected = BATCHES.map(({ batch, movements }) => movementsOf(batch, movements));
  assert.deepEqual(
    outcomes.map((outcome) => outcome.status === 'completed' && outcome.outputs.cents),
    expected.map((movements) => movements.reduce((sum, { cents }) => sum + cents, 0)),
  );
  const entries = await books.entries();
  for (const [index, sessionId] of sessions.entries()) {
    const booked = entries.filter(({ session_id }) => session_id === sessionId);
    assert.deepEqual(
      booked.map(({ id, from, to, cents }) => ({ id, from, to, cents })),
      expected[index],
      'row for row, in the order of the bank',
    );
  }
  const balances = await books.balances();
  assert.deepEqual(balances, balancesOf(expected.flat()));
  assert.equal(entries.length, expected.flat().length);
  say('auditor', `${entries.length} movements entered ${entered} times, booked once each: ${JSON.stringify(balances)}`);
  console.log('\nTo the cent.');
} finally {
  for (const child of children) child.kill('SIGKILL');
  rmSync(folder, { recursive: true });
}

function start(file: string, ...args: string[]): ChildProcess {
  const child = fork(new URL(file, import.meta.url), args);
  children.push(child);
  return child;
}

function balancesOf(movements: ReturnType<typeof movementsOf>): Record<string, number> {
  const balances: Record<string, number> = {};
  for (const { from, to, cents } of movements) {
    balances[from] = (balances[from] ?? 0) - cents;
    balances[to] = (balances[to] ?? 0) + cents;
  }
  return balances;
}
