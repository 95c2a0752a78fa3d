export { type PromoteOptions, promote } from './promote.ts';
export { recordSession } from './record-session.ts';
export { type Replay, type ReplayedSession, type ReplayOptions, replayRecording } from './replay.ts';
