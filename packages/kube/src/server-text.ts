/**
 * Text of a server made safe for logs, Events and statuses: without control characters, bounded, and without the credentials
 * that were sent to it. A server, or a proxy in front of it, may repeat the headers of a request in its answer.
 */
import type { AuthHeaders } from './config/credentials.ts'

/** C0, DEL and C1 controls; line and paragraph separators; bidirectional marks; the byte order mark. */
const UNPRINTABLE = /[\p{Cc}\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]+/gu

/** `text` on one line, cut to `maxLength` characters. */
export function cleanText(text: string, maxLength: number): string {
  const cut = text.length > maxLength ? `${text.slice(0, maxLength)}…` : text
  return cut.replaceAll(UNPRINTABLE, ' ')
}

const REMOVED = '[credential removed]'
/** Shorter ones occur in ordinary words. */
const SHORTEST = 4
/** A server may cut the text that it repeats: what begins like the credential is removed too. */
const PREFIX_LENGTH = 16
/** A shorter beginning occurs in ordinary words. */
const MIN_PREFIX_LENGTH = 8
/** Credentials are rotated: a server may repeat the one before. */
const REMEMBERED = 4

/** Removes the credentials of requests from what a server answers. */
export class CredentialFilter {
  readonly #secrets: string[] = []
  #pattern: RegExp | undefined

  /** The headers of a request that is about to be sent. */
  remember({ authorization = [] }: AuthHeaders): void {
    for (const value of [authorization].flat()) {
      const secret = value.replace(/^(Bearer|Basic) +/i, '')
      if (secret.length < SHORTEST || this.#secrets.includes(secret)) continue
      this.#secrets.push(secret)
      if (this.#secrets.length > REMEMBERED) this.#secrets.shift()
      // The longest first: one may begin like another.
      const patterns = this.#secrets.toSorted((a, b) => b.length - a.length).map((each) => patternOf(each))
      this.#pattern = new RegExp(patterns.join('|'), 'g')
    }
  }

  text(text: string): string {
    return this.#pattern === undefined ? text : text.replaceAll(this.#pattern, REMOVED)
  }

  /** A value of JSON: its texts, and the names of its fields. */
  json<T>(value: T): T {
    if (this.#pattern === undefined) return value
    const text = JSON.stringify(value)
    const clean = this.text(text)
    return clean === text ? value : (JSON.parse(clean) as T)
  }

  body(body: Buffer): Buffer {
    // JSON may write any character of it in another way; whoever parses the body reads it.
    if (this.#pattern !== undefined && (body.includes(String.raw`\u`) || body.includes(String.raw`\/`)))
      return this.#parsedBody(body)
    return this.#plainBody(body)
  }

  #parsedBody(body: Buffer): Buffer {
    let value: unknown
    try {
      value = JSON.parse(body.toString('utf8'))
    } catch {
      return this.#plainBody(body)
    }
    const clean = this.json(value)
    return clean === value ? body : Buffer.from(JSON.stringify(clean))
  }

  #plainBody(body: Buffer): Buffer {
    if (!this.#secrets.some((secret) => body.includes(secret.slice(0, prefixLengthOf(secret))))) return body
    return Buffer.from(this.text(body.toString('utf8')))
  }
}

function patternOf(secret: string): string {
  // As a header has it, and as JSON writes it.
  return [...new Set([secret, JSON.stringify(secret).slice(1, -1)])]
    .map((form) =>
      form.length < MIN_PREFIX_LENGTH * 2
        ? escapeRegExp(form)
        : `${escapeRegExp(form.slice(0, prefixLengthOf(form)))}[\\w.~+/=-]*`,
    )
    .join('|')
}

/** Half of a short one: so much of it gives it away. */
function prefixLengthOf(form: string): number {
  return Math.min(PREFIX_LENGTH, Math.floor(form.length / 2))
}

function escapeRegExp(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\/-]/g, String.raw`\$&`)
}
