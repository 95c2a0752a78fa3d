import { isHcpError } from '../../shared/errors.ts';
import { scrubUrls } from '../../shared/logger.ts';
import type { MongoDbFacts } from '../../shared/store/mongodb/probe.ts';
import { type Finding, ok, problem, unreachable, warning } from './finding.ts';

const SUBJECT = 'MongoDB';
/** Leases are judged by the server's clock, time-outs by ours. */
const CLOCK_TOLERANCE_MS = 1000;

/** What there is to say about a MongoDB server; `probe` is how it is looked at. */
export async function mongoDbFindings(probe: () => Promise<MongoDbFacts>): Promise<Finding[]> {
  try {
    return judge(await probe());
  } catch (error) {
    return [whyNot(error)];
  }
}

function whyNot(error: unknown): Finding {
  const message = scrubUrls(error instanceof Error ? error.message : String(error));
  if (error instanceof TypeError) return problem(SUBJECT, message, 'Correct the URL of --store (or HCP_STORE_URL)');
  if (!isHcpError(error, 'store_unsupported')) {
    return unreachable(SUBJECT, message, 'Start the server, or correct host, port and user in the URL of --store');
  }
  return message.includes('replica set')
    ? problem(SUBJECT, message, 'mongod --replSet hcp …, then once in mongosh: rs.initiate()')
    : problem(SUBJECT, message, 'Give the user the role readWrite on this database, or correct its password');
}

function judge(facts: MongoDbFacts): Finding[] {
  const { version, setName, database } = facts;
  const kind = setName === undefined ? 'sharded, through mongos' : `replica set ${setName}`;
  return [
    ok(SUBJECT, `Version ${version}, ${kind}`),
    databaseFinding(database),
    facts.majorityFault === undefined
      ? ok('Majority writes', 'A majority has what was written')
      : problem('Majority writes', facts.majorityFault, 'Bring back the missing members, or give the user readWrite'),
    facts.transactionFault === undefined
      ? ok('Transactions', 'Work')
      : problem(
          'Transactions',
          facts.transactionFault,
          'Run a replica set of version 4.4 or newer, with readWrite for the user',
        ),
    clockFinding(facts.clockAheadMs),
    indexFinding(facts.indexes),
  ];
}

function databaseFinding(database: string): Finding {
  return database === 'test'
    ? warning('Database', 'The URL names none, so it is "test"', 'Write its name behind the host: mongodb://host/hcp')
    : ok('Database', database);
}

function clockFinding(aheadMs: number): Finding {
  const distance = Math.abs(aheadMs);
  const message = `The server is ${distance} ms ${aheadMs < 0 ? 'behind' : 'ahead of'} this machine`;
  return distance <= CLOCK_TOLERANCE_MS
    ? ok('Clock', message)
    : warning('Clock', message, 'Synchronise both clocks (chrony, ntpd): deadlines and leases are judged by them');
}

function indexFinding(indexes: MongoDbFacts['indexes']): Finding {
  if (indexes === 'new') return ok('Indexes', 'No store has been here; the first command that needs it makes it');
  const { missing, different } = indexes;
  if (different.length > 0) {
    return problem('Indexes', `Not as declared: ${different.join(', ')}`, 'Drop them: the next start makes them again');
  }
  return missing.length > 0
    ? warning('Indexes', `Missing: ${missing.join(', ')}`, 'Start any callee or caller here: it makes them')
    : ok('Indexes', 'All there');
}
