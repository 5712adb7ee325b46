/** Below this width tables and the flow take another form; page.css has the same number. */
import { signal } from '@preact/signals'

const narrow = matchMedia('(max-width: 719px)')

export const isNarrow = signal(narrow.matches)

narrow.addEventListener('change', () => (isNarrow.value = narrow.matches))
