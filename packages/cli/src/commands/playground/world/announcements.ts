/** What `seamark run` prints when its servers answer: `page URL`, and at last `ready`. */
import { Writable } from 'node:stream'

export class Announcements {
  readonly stream: Writable
  /** Settles with the last line. */
  readonly ready: Promise<void>
  /** URL of the page. */
  page = ''

  constructor() {
    let text = ''
    let onReady: () => void = () => undefined
    this.ready = new Promise((resolve) => (onReady = resolve))
    this.stream = new Writable({
      write: (part: Buffer, _encoding, done) => {
        text += part.toString()
        this.page = /^page (\S+)$/m.exec(text)?.[1] ?? ''
        if (/^ready\b.*\n/m.test(text)) onReady()
        done()
      },
    })
  }
}
