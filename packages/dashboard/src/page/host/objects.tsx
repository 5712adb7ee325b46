/** The objects behind a host, as YAML. */
import type { JSX } from 'preact'
import type { ObjectYaml } from '../../api/host-page.ts'
import { objectText } from '../parts/words.ts'

export function Objects({ objects }: { objects: readonly ObjectYaml[] }): JSX.Element {
  if (objects.length === 0) return <p class="empty">No object is known.</p>
  return (
    <div class="objects">
      {objects.map((object) => (
        <details key={`${object.apiVersion} ${objectText(object)}`}>
          <summary>
            <span class="mono">{objectText(object)}</span> <span class="quiet">{object.apiVersion}</span>
          </summary>
          {object.yaml === undefined ? (
            <p class="empty">{object.hidden}</p>
          ) : (
            <pre tabIndex={0} role="group" aria-label={objectText(object)}>
              {object.yaml}
            </pre>
          )}
        </details>
      ))}
    </div>
  )
}
