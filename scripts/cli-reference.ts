/** Writes the part of docs/cli.md that is made from the table of commands. */
import { readFileSync, writeFileSync } from 'node:fs';
import { COMMANDS } from '../cli/commands/index.ts';
import { cliReference } from '../cli/reference.ts';

export const CLI_DOC = new URL('../docs/cli.md', import.meta.url);

const BEGIN = '<!-- From here on made by `node scripts/cli-reference.ts` -->';

/** The document with that part made anew. */
export function withReference(document: string): string {
  const [prose = ''] = document.split(BEGIN);
  return `${prose}${BEGIN}\n\n${cliReference(COMMANDS).trimEnd()}\n`;
}

if (import.meta.main) writeFileSync(CLI_DOC, withReference(readFileSync(CLI_DOC, 'utf8')));
