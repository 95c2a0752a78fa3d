/**
 * What the fragments in the documents may use without saying where it comes from: things of the reader's own program.
 * A fragment sees it like an outer scope. Nothing here is ever run.
 */
import type {
  DeliveryHandler,
  Logger,
  QueueDeclaration,
  Store,
  StoreTransaction,
  Tables,
  Transport,
  wire,
} from 'hcp-sdk';
import type { Callee, Cleanup, Executor, KeyRing, Policy, Run } from 'hcp-sdk/callee';
import type { Caller, Outcome, PatchOperation, Session, Task } from 'hcp-sdk/caller';
import type { MongoDbStore } from 'hcp-sdk/store/mongodb';
import type { StoreHarness, TransportHarness } from 'hcp-sdk/testing';

export declare const transport: Transport;
export declare const store: Store;
export declare const mongo: MongoDbStore;
export declare const logger: Logger;

export declare const callee: Callee;
export declare const declaration: wire.Capability;
export declare const executor: Executor;
export declare const cleanup: Cleanup;
export declare const policy: Policy;
export declare const keys: KeyRing;
export declare const publicKeys: KeyRing;
export declare const run: Run;
export declare const sessionId: string;
/** The equipment of the safety guide. */
export declare const furnace: { heat(temperature: number): Promise<void>; coolDown(): Promise<void>; off(): void };
export declare function doorIsOpen(): Promise<boolean>;

export declare const caller: Caller;
export declare const session: Session;
export declare const task: Task;
export declare const outcome: Outcome;
export declare const tx: StoreTransaction;
/** A collection of the reader's own. */
export declare const events: { insertOne(row: object, options: { session: unknown }): Promise<unknown> };
export declare function isFine(cure: readonly PatchOperation[]): Promise<boolean>;

export declare const error: unknown;
export declare function retryLater(): Promise<void>;
/** Shows something to a person. */
export declare function show(...what: unknown[]): void;

export declare const handle: DeliveryHandler;
export declare const partitions: readonly QueueDeclaration[];
export declare function quiet(): Promise<void>;

/** An adapter of the reader's own. */
export declare function openMyStore(options: { tables: Tables }): Promise<Store>;
export declare const storeHarness: StoreHarness;
export declare const transportHarness: TransportHarness;
export declare function it(name: string, test: () => Promise<void>, timeLimitMs?: number): void;
