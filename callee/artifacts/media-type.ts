const TOKEN = "[A-Za-z0-9!#$%&'*+.^_`|~-]+";
const PARAMETER = `[ \\t]*;[ \\t]*${TOKEN}=(?:${TOKEN}|"[ !#-\\[\\]-~]*")`;
const MEDIA_TYPE = new RegExp(`^${TOKEN}/${TOKEN}(?:${PARAMETER})*$`);
const LONGEST = 255;

/** Whether a text can stand in a `Content-Type` header: `text/csv`, `text/plain; charset=utf-8`. */
export function isMediaType(text: unknown): text is string {
  return typeof text === 'string' && text.length <= LONGEST && MEDIA_TYPE.test(text);
}
