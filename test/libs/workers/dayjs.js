// dayjs with its plugins: own formats in, relative time and time zones out.
import dayjs from "dayjs";
import "dayjs/locale/de.js";
import customParseFormat from "dayjs/plugin/customParseFormat.js";
import relativeTime from "dayjs/plugin/relativeTime.js";
import timezone from "dayjs/plugin/timezone.js";
import utc from "dayjs/plugin/utc.js";

for (const plugin of [customParseFormat, relativeTime, utc, timezone]) dayjs.extend(plugin);

export default {
  fetch() {
    const date = dayjs.utc("15.11.2026 05:30", "DD.MM.YYYY HH:mm");
    return Response.json({
      iso: date.toISOString(),
      zone: date.tz("America/New_York").format("YYYY-MM-DD HH:mm Z"),
      ago: date.locale("de").from(date.add(3, "day")),
      end: date.endOf("month").date(),
    });
  },
};
