// i18next: the language of the request, plural forms, nesting, a fallback, numbers by locale.
import i18next from "i18next";

const i18n = i18next.createInstance();
const ready = i18n.init({
  fallbackLng: "en",
  resources: {
    en: { translation: { cart_one: "{{count}} item", cart_other: "{{count}} items", only: "English only", price: "{{value, number}}" } },
    pl: { translation: { cart_one: "{{count}} rzecz", cart_few: "{{count}} rzeczy", cart_many: "{{count}} rzeczy (wiele)", cart_other: "{{count}} rzeczy?" } },
    de: { translation: { cart_one: "{{count}} Ding", cart_other: "{{count}} Dinge", price: "{{value, number}} Euro" } },
  },
});

export default {
  async fetch(request) {
    await ready;
    const lng = request.headers.get("accept-language").split(/[,;-]/)[0];
    const t = i18n.getFixedT(lng);
    return Response.json({
      carts: [1, 2, 5].map((count) => t("cart", { count })), only: t("only"), price: t("price", { value: 1234567.5 }),
    });
  },
};
