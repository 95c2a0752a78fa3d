/** What the demo draws: a live bar on a terminal, plain lines elsewhere; colours unless NO_COLOR says no. */
import { styleText } from 'node:util';

const { stdout } = process;
const WIDTH = 40;
const COLOURS = { caller: 'cyan', callee: 'yellow', link: 'magenta', ledger: 'green' } as const;

/** One line of the story. */
export function say(who: keyof typeof COLOURS, what: string): void {
  // On a terminal it takes the place of the bar, which is drawn again below it.
  if (stdout.isTTY) stdout.write('\r\x1b[K');
  stdout.write(`${line(who, what)}\n`);
}

/** Where the work is. Without a terminal every fifth of it is a line. */
export function showProgress(percent: number, message: string): void {
  const done = Math.round((WIDTH * percent) / 100);
  const bar = `${'█'.repeat(done)}${'░'.repeat(WIDTH - done)} ${message}`;
  if (percent === 100 || (!stdout.isTTY && percent % 20 === 0)) say('callee', bar);
  else if (stdout.isTTY) stdout.write(`\r${line('callee', bar)}`);
}

function line(who: keyof typeof COLOURS, what: string): string {
  return `  ${styleText(COLOURS[who], who.padEnd(8))} ${what}`;
}
