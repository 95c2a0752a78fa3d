// A callee for the conformance kit in a process of its own: `conformance-callee-main.ts <options as JSON>`.
import { openStore } from '../../shared/store/open-store.ts';
import { openTransport } from '../../shared/transport/open-transport.ts';
import { type ConformanceProcessOptions, serveConformance } from './conformance-callee.ts';

const { calleeId, transportUrl, storeUrl }: ConformanceProcessOptions = JSON.parse(process.argv[2] ?? '');
const [transport, store] = await Promise.all([openTransport(transportUrl), openStore(storeUrl)]);
// The same name each time: it goes on at once with what the process before it left.
await serveConformance({ calleeId, transport, store, instanceId: 'only' });
console.log('ready');
