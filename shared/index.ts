export { schemas } from '../schemas/index.ts';
export type * as wire from '../schemas/types.ts';
export { type Clock, systemClock } from './clock.ts';
export { formatDuration, parseDuration } from './durations.ts';
export { HCP_ERROR_CODES, HcpError, type HcpErrorCode, isHcpError } from './errors.ts';
export type { SchemaBounds } from './foreign-schema/bounds.ts';
export {
  createSchemaSandbox,
  type SandboxOptions,
  type SchemaSandbox,
  type Verdict,
} from './foreign-schema/sandbox.ts';
export {
  type HarnessId,
  isHarnessId,
  isUuidV4,
  type MessageId,
  newMessageId,
  newSessionId,
  parseHarnessId,
  parseSessionId,
  type SessionId,
} from './ids.ts';
export { createLogger, type Logger, redact, silentLogger } from './logger.ts';
export { type BuildOptions, type BuiltMessage, buildMessage, type MessageDraft } from './messages/build.ts';
export { FAULT_RULES, type FaultCode, type FoundType, type MessageFault, type Salvage } from './messages/fault.ts';
export { DEFAULT_MESSAGE_LIMITS, type MessageLimits, resolveMessageLimits } from './messages/limits.ts';
export {
  type EventData,
  type ExtensionCommands,
  type ExtensionEventData,
  type ExtensionMessage,
  HCP_VERSION,
  type HcpMessage,
  IN_REPLY_TO_HEADER,
  type Messages,
} from './messages/message.ts';
export { type ParsedMessage, parseMessage, type RefusedMessage } from './messages/parse.ts';
export {
  EVENT_TYPES,
  type EventType,
  MESSAGE_TYPES,
  type MessageType,
  type SchemaName,
  schemaFault,
} from './messages/validators.ts';
export { openStore } from './store/open-store.ts';
export type {
  Condition,
  Conflict,
  Key,
  Range,
  Row,
  Store,
  StoreReader,
  StoreTransaction,
  Value,
  Write,
} from './store/store.ts';
export { type ColumnType, hcpTables, type Index, type Table, type TableName, type Tables } from './store/tables.ts';
export { traceContext, traceHeaders } from './telemetry.ts';
export { openTransport } from './transport/open-transport.ts';
export {
  type Binding,
  bindingMatches,
  commandQueue,
  commandRoute,
  deadLetterQueue,
  EXCHANGES,
  type ExchangeName,
  eventQueue,
  eventRoute,
  type HashExchangeName,
  type HashedBinding,
  partitionQueue,
  type QueueDeclaration,
  type QueueOptions,
  type QueueProfile,
  type Route,
  sessionQueue,
} from './transport/topology.ts';
export type {
  ConsumeOptions,
  Consumer,
  Delivery,
  DeliveryHandler,
  MessageProperties,
  OutgoingMessage,
  ReceivedProperties,
  Transport,
  TransportStatus,
} from './transport/transport.ts';
