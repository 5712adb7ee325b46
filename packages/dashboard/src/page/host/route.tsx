/** Which rule of the gateway takes a request. */
import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import type { RouteAnswer } from '../../api/host-page.ts'
import { hostPath } from '../data/paths.ts'
import { requestJson } from '../data/requests.ts'
import { Command } from '../parts/command.tsx'
import { Shape } from '../parts/shape.tsx'
import type { ShapeName, Tone } from '../parts/words.ts'

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const

const SHAPES: Readonly<Record<RouteAnswer['outcome'], readonly [ShapeName, Tone]>> = {
  route: ['check', 'fine'],
  redirect: ['diamond', 'fine'],
  none: ['square', 'bad'],
  unknown: ['dashed', 'quiet'],
}

export function Route({ name }: { name: string }): JSX.Element {
  const answer = useSignal<RouteAnswer | undefined>(undefined)
  const fault = useSignal('')
  const ask = async (form: HTMLFormElement): Promise<void> => {
    const fields = new FormData(form)
    const parameters = new URLSearchParams({ method: textOf(fields, 'method'), path: textOf(fields, 'path') || '/' })
    const header = textOf(fields, 'header').trim()
    if (header !== '') parameters.append('header', header)
    try {
      answer.value = await requestJson<RouteAnswer>(`/api/v1${hostPath(name)}/route?${parameters.toString()}`)
      fault.value = ''
    } catch (error) {
      fault.value = error instanceof Error ? error.message : String(error)
    }
  }
  return (
    <>
      <form
        class="route"
        onSubmit={(event) => {
          event.preventDefault()
          void ask(event.currentTarget)
        }}
      >
        <select name="method" aria-label="Method">
          {METHODS.map((method) => (
            <option key={method}>{method}</option>
          ))}
        </select>
        <input name="path" aria-label="Path" defaultValue="/" spellcheck={false} autocomplete="off" />
        <input name="header" aria-label="Header" placeholder="Header: value" spellcheck={false} autocomplete="off" />
        <button type="submit">Ask</button>
      </form>
      <div aria-live="off">
        {fault.value !== '' && <p class="bad">{fault.value}</p>}
        {answer.value !== undefined && fault.value === '' && <Answer answer={answer.value} />}
      </div>
    </>
  )
}

function Answer({ answer }: { answer: RouteAnswer }): JSX.Element {
  const [shape, tone] = SHAPES[answer.outcome]
  return (
    <>
      <p class="route-answer">
        <Shape name={shape} tone={tone} /> {answer.text}
      </p>
      {answer.command !== '' && <Command command={answer.command} />}
    </>
  )
}

function textOf(fields: FormData, name: string): string {
  const value = fields.get(name)
  return typeof value === 'string' ? value : ''
}
