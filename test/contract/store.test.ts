import { afterAll, describe, it } from 'vitest';
import { storeContract } from '../../testing/store-contract/index.ts';
import {
  type DisposableHarness,
  memoryHarness,
  mongodbHarness,
  sqliteHarness,
} from '../shared/store/support/harnesses.ts';
import { describeWith, freshDatabase, mongodb, serverLabel } from '../support/services/index.ts';
import { verifies } from '../support/verifies.ts';

function runContract(harness: DisposableHarness): void {
  afterAll(() => harness[Symbol.asyncDispose]());
  for (const { name, verifies: ids, run, timeLimitMs } of storeContract(harness)) {
    if (ids.length > 0) verifies(ids, name, run, timeLimitMs);
    else it(name, run, timeLimitMs);
  }
}

describe('store contract: memory', () => runContract(memoryHarness()));

describe(`store contract: sqlite ${process.versions.sqlite} (node:sqlite)`, () => runContract(sqliteHarness()));

const server = mongodb();
describeWith(`store contract: ${serverLabel('mongodb', server)}`, server, (server) => {
  const database = freshDatabase(server);
  afterAll(() => database[Symbol.asyncDispose]());
  runContract(mongodbHarness(database.url));
});
