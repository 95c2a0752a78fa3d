/** What `hcp.conformance` is to do, one step after the other: the name of each step is its only key. */
export type Script = readonly Readonly<Record<string, unknown>>[];

export const COMPLETE = { complete: { outputs: { ok: true } } };
export const HANG = { hang: {} };
export const PAUSE = { pause: {} };
export const RESUME = { resume: {} };

export function progress(message = 'One step further'): { readonly progress: object } {
  return { progress: { stage: 'work', percent: 50, message } };
}

export function checkpoint(description = 'So far'): { readonly checkpoint: object } {
  return { checkpoint: { description, data: { done: 1 } } };
}

export function fail(code = 'execution_error', message = 'It broke'): { readonly fail: object } {
  return { fail: { code, message } };
}
