/** One host: the hops that lead to its answer, what servers answer, its targets, and the objects behind it. */
import { useComputed } from '@preact/signals'
import type { JSX } from 'preact'
import type { HostPage } from '../../api/host-page.ts'
import { hostPath } from '../data/paths.ts'
import { state } from '../data/live-state.ts'
import { useReading } from '../data/reading.ts'
import { Command } from '../parts/command.tsx'
import { Region } from '../parts/region.tsx'
import { Shape } from '../parts/shape.tsx'
import { Since, Until } from '../parts/time.tsx'
import { HOST_LOOKS } from '../parts/words.ts'
import { ReadingFault, Title } from '../views/view-parts.tsx'
import { Answers } from './answers.tsx'
import { Hops } from './hops.tsx'
import { Objects } from './objects.tsx'
import { Route } from './route.tsx'
import { Targets } from './targets.tsx'

export function HostDetails({ name }: { name: string }): JSX.Element {
  const changed = useComputed(() => state.value?.hosts.find((host) => host.name === name))
  const { value, fault } = useReading<HostPage>(`/api/v1${hostPath(name)}`, changed.value).value
  if (fault?.code === 'NotFound')
    return (
      <div class="view">
        <Title>{name}</Title>
        <p class="empty">
          No host of this name is known{value === undefined ? '' : ' any more'}. <a href="/">All hosts</a>
        </p>
        <Command command={`seamark explain ${name}`} />
      </div>
    )
  return (
    <div class="view host">
      <Title>{name}</Title>
      {value === undefined ? (
        fault === undefined && <p class="empty">Reading …</p>
      ) : (
        <>
          <Verdict page={value} />
          <div class="host-columns">
            <Region title="Hops" class="plain">
              <Hops hops={value.hops} />
            </Region>
            <div class="host-side">
              <Region title="Answers" class="plain">
                <Answers answers={value.answers} />
              </Region>
              <Region title="Targets" class="plain">
                <Targets targets={value.targets} at={value.at} />
              </Region>
              <Region title="Which rule takes this request" class="plain">
                <Route key={name} name={name} />
              </Region>
              <Region title="Commands" class="plain">
                <ul role="list" class="commands">
                  {value.commands.map(({ command, text }) => (
                    <li key={command}>
                      <Command command={command} text={text} />
                      <span class="quiet">{text}</span>
                    </li>
                  ))}
                </ul>
              </Region>
            </div>
          </div>
          <Region title="Objects" class="plain">
            <Objects objects={value.objects} />
          </Region>
        </>
      )}
      {fault !== undefined && <ReadingFault fault={fault} />}
    </div>
  )
}

function Verdict({ page }: { page: HostPage }): JSX.Element {
  const { state, text, since, owner, by, waiting, held, reason } = page.host
  const { shape, tone, word } = HOST_LOOKS[state]
  return (
    <div class="verdict">
      <p>
        <Shape name={shape} tone={tone} /> <strong class={tone}>{word}</strong>
        {reason !== undefined && state !== 'as it should be' && <code class="code">{reason}</code>}
        {since !== undefined && <Since at={since} />}
        <span class="quiet">
          {owner}, by {by}
        </span>
      </p>
      {text !== `${page.host.name} is as it should be` && <p class="verdict-text">{text}</p>}
      {waiting !== undefined && (
        <p>
          <Shape name="half" tone="warn" /> It is being {waiting.what}: {waiting.waitsFor}
          {waiting.until !== undefined && (
            <Until key={waiting.until} at={waiting.until} before=", at most " after=" more" />
          )}
        </p>
      )}
      {held !== undefined && (
        <p class="verdict-held">
          <Shape name="held" tone="warn" /> A change is held: <code class="code">{held.reason}</code>
          {held.since !== undefined && <Since at={held.since} />}
          {held.command !== '' && <Command command={held.command} />}
        </p>
      )}
    </div>
  )
}
