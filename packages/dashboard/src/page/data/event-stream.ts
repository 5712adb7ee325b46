/** Server-sent events of a response body. Comments and fields other than event, id and data are ignored. */
export interface StreamEvent {
  readonly event: string
  readonly id: string | undefined
  readonly data: string
}

export async function* readEvents(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<StreamEvent> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  /** Of the line that is not complete: a snapshot is megabytes in one line, and joining each part would copy it each time. */
  let parts: string[] = []
  let event = 'message'
  let id: string | undefined
  let data: string[] = []
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      const lines = value.split('\n')
      const last = lines.pop() ?? ''
      for (const end of lines) {
        parts.push(end)
        const whole = parts.length === 1 ? end : parts.join('')
        const line = whole.endsWith('\r') ? whole.slice(0, -1) : whole
        parts = []
        if (line !== '') {
          const at = line.indexOf(':')
          const field = at < 0 ? line : line.slice(0, at)
          const text = at < 0 ? '' : line.slice(line[at + 1] === ' ' ? at + 2 : at + 1)
          if (field === 'event') event = text
          else if (field === 'id') id = text
          else if (field === 'data') data.push(text)
          continue
        }
        if (data.length > 0) yield { event, id, data: data.join('\n') }
        event = 'message'
        id = undefined
        data = []
      }
      if (last !== '') parts.push(last)
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}
