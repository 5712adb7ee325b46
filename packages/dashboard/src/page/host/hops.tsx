/** The chain from the source to the answer, as `seamark explain` prints it. */
import type { JSX } from 'preact'
import type { HopView } from '../../api/host-page.ts'
import { Shape } from '../parts/shape.tsx'
import { Since } from '../parts/time.tsx'
import { HOP_LOOKS, objectText } from '../parts/words.ts'

export function Hops({ hops }: { hops: readonly HopView[] }): JSX.Element {
  return (
    <ol role="list" aria-label="Hops" class="hops">
      {hops.map((hop, index) => (
        // A host has a hop of the same name for each of its leaves.
        <Hop key={`${hop.name} ${index}`} hop={hop} />
      ))}
    </ol>
  )
}

function Hop({ hop }: { hop: HopView }): JSX.Element {
  const { name, state, reason, meaning, text, object, since } = hop
  const { shape, tone, word } = HOP_LOOKS[state]
  return (
    <li class={`hop ${state}`}>
      <span class="hop-mark">
        <Shape name={shape} tone={tone} />
      </span>
      <span class="hop-name">{name}</span> <span class={`hop-word ${tone}`}>{word}</span>{' '}
      <div class="hop-body">
        <p>
          {reason !== undefined && (
            <code class="code" title={meaning}>
              {reason}
            </code>
          )}{' '}
          {text}
        </p>
        {(object !== undefined || since !== undefined) && (
          <p class="quiet">
            {object !== undefined && <span>{objectText(object)} </span>}
            {since !== undefined && <Since at={since} />}
          </p>
        )}
        {(state === 'degraded' || state === 'broken') && meaning !== undefined && <p class="quiet">{meaning}</p>}
      </div>
    </li>
  )
}
