const TOKEN_FIELD = /"session_token"\s*:\s*"((?:[^"\\]|\\.)+)"/g;

/** Puts a stand-in in the place of every session token, the same one for the same token, and leaves all other bytes alone. */
export class Scrubber {
  readonly #standIns = new Map<string, string>();

  scrub(bytes: Uint8Array): Buffer {
    // One character for each byte, so that what is no text survives too.
    let text = Buffer.from(bytes).toString('latin1');
    for (const [, token = ''] of text.matchAll(TOKEN_FIELD)) {
      if (!this.#standIns.has(token)) this.#standIns.set(token, `recorded-token-${this.#standIns.size + 1}`);
    }
    for (const [token, standIn] of this.#standIns) text = text.replaceAll(token, standIn);
    return Buffer.from(text, 'latin1');
  }
}
