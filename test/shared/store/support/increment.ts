// Another process of the store contract: `increment.ts <store URL> <program as JSON>`.
import { openStore } from '../../../../shared/store/open-store.ts';
import { runOtherProcessProgram } from '../../../../testing/store-contract/index.ts';

const [, , url = '', json = ''] = process.argv;
const program = JSON.parse(json);
await using store = await openStore(url, { tables: program.tables });
await runOtherProcessProgram(store, program);
