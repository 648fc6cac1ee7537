const months = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]
const days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]

const two = (value: number): string => value.toString().padStart(2, "0")

const dayOfYear = (date: Date): number =>
  Math.round((Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) - Date.UTC(date.getFullYear(), 0, 1)) / 86_400_000) + 1

/** Python's `strftime` in the C locale, in the local time zone of the process. An unknown directive is kept as it is. */
export const strftime = (time: number, format: string): string => {
  const date = new Date(time)
  const hour12 = date.getHours() % 12 === 0 ? 12 : date.getHours() % 12
  const directive = (letter: string): string | undefined => {
    switch (letter) {
      case "Y":
        return date.getFullYear().toString()
      case "y":
        return two(date.getFullYear() % 100)
      case "m":
        return two(date.getMonth() + 1)
      case "d":
        return two(date.getDate())
      case "e":
        return date.getDate().toString().padStart(2, " ")
      case "j":
        return dayOfYear(date).toString().padStart(3, "0")
      case "b":
      case "h":
        return months[date.getMonth()]?.slice(0, 3)
      case "B":
        return months[date.getMonth()]
      case "a":
        return days[date.getDay()]?.slice(0, 3)
      case "A":
        return days[date.getDay()]
      case "w":
        return date.getDay().toString()
      case "u":
        return (date.getDay() === 0 ? 7 : date.getDay()).toString()
      case "H":
        return two(date.getHours())
      case "I":
        return two(hour12)
      case "M":
        return two(date.getMinutes())
      case "S":
        return two(date.getSeconds())
      case "f":
        return `${date.getMilliseconds().toString().padStart(3, "0")}000`
      case "p":
        return date.getHours() < 12 ? "AM" : "PM"
      case "F":
        return strftime(time, "%Y-%m-%d")
      case "T":
      case "X":
        return strftime(time, "%H:%M:%S")
      case "R":
        return strftime(time, "%H:%M")
      case "D":
      case "x":
        return strftime(time, "%m/%d/%y")
      case "c":
        return strftime(time, "%a %b %e %H:%M:%S %Y")
      case "s":
        return Math.floor(time / 1000).toString()
      case "n":
        return "\n"
      case "t":
        return "\t"
      case "z":
      case "Z":
        return ""
      case "%":
        return "%"
      default:
        return undefined
    }
  }
  return format.replace(/%-?([a-zA-Z%])/g, (all, letter: string) => {
    const text = directive(letter)
    if (text === undefined) return all
    return all.startsWith("%-") ? text.replace(/^[0 ]+(?=.)/, "") : text
  })
}
