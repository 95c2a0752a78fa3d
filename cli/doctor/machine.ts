import { satisfies } from 'semver';
import type { SqliteFacts } from '../../shared/store/sqlite/probe.ts';
import { type Finding, ok, problem, unreachable, warning } from './finding.ts';

const NODE_RANGE = '>=22.13';

export function nodeFinding(version: string): Finding {
  return satisfies(version, NODE_RANGE)
    ? ok('Node', `Version ${version}`)
    : problem('Node', `Version ${version} is too old`, `Install Node ${NODE_RANGE}`);
}

/** What there is to say about a database file. */
export function fileFinding(path: string, facts: SqliteFacts): Finding {
  const subject = `File ${path}`;
  switch (facts.state) {
    case 'absent':
      return ok(subject, 'Does not exist yet; the first command that needs it makes it');
    case 'inaccessible':
      return unreachable(subject, facts.why, 'Correct its rights, or name another file with --db');
    case 'locked':
      return warning(subject, facts.why, 'Find the process that holds it for so long (fuser, lsof) and end it');
    case 'damaged':
      return problem(subject, facts.why, 'Restore it from a backup, or name another file with --db');
    case 'sound':
      return ok(
        subject,
        `Readable, writable, sound; ${facts.bytes} bytes, ${
          facts.journalMode === 'wal' ? 'WAL' : `journal mode ${facts.journalMode}, which becomes WAL at the first use`
        }`,
      );
  }
}
